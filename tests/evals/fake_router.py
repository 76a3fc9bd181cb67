"""A router by script: picks a skill by words of the request, or always answers what its first argument says."""

from __future__ import annotations

import re
import sys

WORDS = (
    ("none", r"CSV|JSON config|pytest-benchmark|cProfile|py-spy|snapshot|Chrome|OpenTelemetry|systrace|Triton kernel"),
    ("compare", r"compare these two traces|before\.json|eager vs|slower than the stored|A100 and on an H100|rank 7"),
    ("explain-finding", r"gemm\.F1 gains|idle\.F1"),
    ("what-if", r"If the host|worth more|twice as fast\?"),
    ("capture-trace", r"record a good|record the profile|no trace yet"),
    ("rooftrace", r"orchestrator|trace|profil|prof\.json|rooftrace run"),
)


def main() -> int:
    manner, prompt = sys.argv[1], sys.argv[2]
    request = prompt.split("<request>")[1].split("</request>")[0]
    name = next((name for name, words in WORDS if re.search(words, request)), "none")
    print(f"The request reads like that.\n{name if manner == 'words' else manner}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
