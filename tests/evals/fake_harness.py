"""A harness by script: works on a trace as an agent would, in the manner that its first argument names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

SLOTS = {
    "insight": "The kernels of this finding take {{%s.score_mid_pct}} of the span more than they need.",
    "action": "Wrap the step in `torch.compile` and record the run again.",
    "reasoning": "The score is {{%s.score_high_pct}} at most, and the quantities of the finding lead to it.",
    "resolution": "Compile the step, keep the shapes fixed.\n\nCompare the outputs once.",
}


def command(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    launcher = Path(os.environ["PACK"]) / "scripts" / "rooftrace.py"
    return subprocess.run(
        [sys.executable, str(launcher), *words], input=text, capture_output=True, text=True, check=False
    )


def prose(analyzer: str) -> str:
    if analyzer == "model":
        told = "reasoning: Its class is {{model.model_class}}.\nsummary: A network that served batches."
        return f"name: a network\nfamily: network of layers\nconfidence: low\n{told}\n"
    report = json.loads(Path("run/report.json").read_text())
    ids = [row["id"] for row in (*report["findings"], *report["unranked"]) if row["id"].startswith(f"{analyzer}.")]
    parts = ["summary: What these findings say together is told by the findings themselves."]
    for name in ids:
        slots = (f"{slot}: {text.replace('%s', name)}" for slot, text in SLOTS.items())
        parts.append("\n".join([name, *slots]))
    return "\n\n".join(parts) + "\n"


def orchestrate(trace: str) -> None:
    command("prepare", trace, "-o", "run")
    for _ in range(20):
        step = json.loads(command("next", "run", "--json").stdout)
        if step["action"] == "done":
            return
        for task in step["tasks"]:
            command("submit", "run", task["analyzer"], text=prose(task["analyzer"]))
        if not step["tasks"]:
            command("report", "run")


def answer() -> str:
    report = json.loads(Path("run/report.json").read_text())
    page = Path("run/analysis.md").read_text()
    health = re.search(r"## Trace Health.*?\n\n(.*?)\n\n", page, re.S)
    told = [
        f"{row['id']}: {row['title']} ({row['evidence'].get('op_names', '')}). {row['action']}"
        for row in report["findings"][:3]
    ]
    return "\n".join([health[1] if health else "", *told])


def main() -> int:
    manner, prompt = sys.argv[1], sys.argv[2]
    trace = next(word.rstrip(".") for word in prompt.split() if word.rstrip(".").endswith((".gz", ".md")))
    number = int(os.environ["ROOFTRACE_ATTEMPT"])
    if manner == "crashing" or (manner == "flaky" and number == 0):
        print("giving up")
        return 3
    if not os.environ["PACK"]:
        print("I cannot tell without tools, but it is probably the matrix products.")
        return 0
    orchestrate(trace)
    text = answer()
    if manner == "inventing":
        text += "\nFixing all of it would make the step 4711.25 ms faster."
        Path("notes.txt").write_text("a file that nobody asked for")
    print(json.dumps({"result": text, "usage": {"input_tokens": 1200, "output_tokens": 34}, "total_cost_usd": 0.5}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
