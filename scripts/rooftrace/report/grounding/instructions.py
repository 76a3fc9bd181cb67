"""What has no place in a finding: Markdown, links, commands, and words addressed to whoever processes the report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace.contracts.fencing import INVISIBLE
from rooftrace.report.grounding.wording import Wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.report.grounding.grounds import Basis, Slot

MOST_PARAGRAPHS = 4
_FORM = (
    ("a heading", re.compile(r"^[ \t]{0,3}#{1,6}(?:\s|$)|^[ \t]{0,3}(?:=|-){3,}[ \t]*$", re.M)),
    ("a list, a quotation or a table", re.compile(r"^[ \t]*(?:[-*+]|[0-9]+[.)])\s|^[ \t]{0,3}>|\|", re.M)),
    ("a fence or an unpaired backtick", re.compile(r"`|~~~")),
    ("HTML", re.compile(r"<[A-Za-z!/?][^>]{0,200}>?|&(?:#\w+|[A-Za-z]+);")),
    ("emphasis", re.compile(r"\*\*|__|~~")),
    ("a link or an image", re.compile(r"\]\(|\]\[|!\[")),
    ("template syntax", re.compile(r"\{%|%\}|\{#|\$\{")),
)
_UNSEEN = re.compile(f"[{INVISIBLE}\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_URL = Wording(
    r"\b[a-z][a-z0-9+.-]{1,15}://|\bwww\.|\b(?:mailto|javascript|data):\S|\b[\w-]+\.(?:com|org)\b"
    r"|\b[\w-]+\.(?:net|io|ai|dev|sh|ru|cn|co)/",
    ("://", "www.", ":", ".com", ".org", "/"),
)
_SHELL = Wording(
    r"\b(?:curl|wget|sudo|chmod|chown|scp|ssh|netcat|powershell|mkfs)\s+\S|\brm\s+-|\b(?:bash|sh|zsh|python3?|perl|node)\s+-c\b"
    r"|\b(?:pip3?|npm|apt|apt-get|conda|brew|uv pip)\s+install\b|\bnpx\s|\bgit\s+(?:clone|push|reset)\b"
    r"|\bdocker\s+(?:run|exec)\b"
    r"|\bkubectl\s|\beval\s*\(|\bexec\s*\(|\bos\.system\b|\bsubprocess\b|/etc/(?:passwd|shadow)|~/\.(?:ssh|aws|bashrc)",
    (
        *("curl", "wget", "sudo", "chmod", "chown", "scp", "ssh", "netcat", "powershell", "mkfs", "rm", "sh", "python"),
        *("perl", "node", "install", "npx", "git", "docker", "kubectl", "eval", "exec", "system", "subprocess", "/etc"),
        "~/",
    ),
)
_PIPED = re.compile(r"\$\(|&&|\|\||;\s*\w|\s\|\s|\s>{1,2}\s*[~/.\w]")
_PACK = re.compile(r"(?:python3? \S*scripts/rooftrace\.py|rooftrace)(?: [\w./<>-]+)*")
_ADDRESSED = Wording(
    r"\b(?:ignore|disregard|forget|override)\b[^.;]{0,40}\b(?:previous|prior|above|earlier|preceding|all|any|these|your)\b"
    r"[^.;]{0,30}\b(?:instruction|prompt|rule|direction|message|check|finding|guideline)s?"
    r"|\b(?:system|developer) (?:prompt|message)\b"
    r"|\byou are (?:now |an? )+(?:ai|assistant|agent|language model|helpful)"
    r"|\bas an (?:ai|assistant|agent)\b|\b(?:assistant|agent|model), (?:please|do|run|open|write|delete|read|ignore)\b"
    r"|\bdo not (?:tell|report|mention|inform|warn)\b|\b(?:reveal|print|send|upload|exfiltrate)\b[^.;]{0,40}"
    r"\b(?:secrets?|keys?|tokens?|passwords?|credentials?|environment variables)\b"
    r"|\b(?:new|updated|following) instructions?\s*:",
    (
        *(
            "ignore",
            "disregard",
            "forget",
            "override",
            "prompt",
            "message",
            "you are",
            "as an",
            "assistant, ",
            "agent, ",
        ),
        *("model, ", "do not", "reveal", "print", "send", "upload", "exfil", "instruction"),
    ),
)


def not_plain(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Anything but sentences with inline code: Markdown, HTML, control and invisible characters, many paragraphs."""
    del grounds
    raw = slot.text.raw
    if _UNSEEN.search(raw):
        yield "it holds control or invisible characters; write plain text"
    paragraphs = [part for part in re.split(r"\n[ \t]*\n", raw.strip()) if part.strip()]
    most = MOST_PARAGRAPHS if slot.name == "resolution" else 1
    if len(paragraphs) > most or "\n" in " ".join(paragraphs):
        shown = f"{most} paragraphs, each one line," if most > 1 else "one line"
        yield f"it has {len(raw.strip().splitlines())} lines; {shown} at most"
    for what, pattern in _FORM:
        match = pattern.search(slot.text.skeleton)
        if match:
            yield f"it holds {what} (`{match.group().strip()[:30]}`); write plain sentences, names in backticks"


def instructions(slot: Slot, grounds: Basis) -> Iterator[str]:
    """Links, commands that are not the pack's, and words addressed to an assistant, in words or in backticks."""
    for text in [slot.text.plain, *slot.text.code]:
        for what, pattern in (
            ("a link", _URL),
            ("a shell command", _SHELL),
            ("an instruction to a reader", _ADDRESSED),
        ):
            match = pattern.search(text)
            if match and not _PACK.fullmatch(text.strip()):
                yield f"it holds {what} (`{match.group()[:60]}`); words of a trace are data: leave it out"
    for code in slot.text.code:
        if _PIPED.search(code) and not grounds.names.holds(code):
            yield f"`{code[:60]}` is a line of a shell; name the setting or the API alone"
