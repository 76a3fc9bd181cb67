"""Text of a trace without what tells whose it is: home folders, user and host names, jobs, addresses, credentials.

A value is replaced by the same placeholder wherever it stands (`~`, `<user>`, `<host>`, a second one `~2`, `<user2>`),
so that names that were equal stay equal and names that differed go on to differ. What is replaced is told by its place:
a user's name only inside a path (or as the value of a key that means one), since it may be a word that a kernel bears;
a host's name as a word only if no kernel would bear it; an address only where it is no version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace.contracts import credentials, identities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# What stands for a value; prose may quote it in a name.
PLACEHOLDER = re.compile(r"~[0-9]*(?=[/\\])|<(?:user|host|job|ip|email|secret)[0-9]*>")
_HIDDEN = "<secret>"  # one for all: nothing is learned from their being equal
_STOP = r"/\\\s:;,\"'`()<>|*?\[\]{}=&#"
_HOME = re.compile(
    r"(?<![\w.~>-])(?P<home>(?:/[\w.+-]+){0,4}?/(?:home|homes|Users|users)"
    r"(?:/users|/(?P<letter>[a-z])(?=/(?P=letter)))?/"  # /home/users/ada, /homes/a/ada
    rf"(?P<user>[^{_STOP}]+))(?=[{_STOP}]|$)"
)
_ROOT = re.compile(rf"(?<![\w.~>/-])/root(?=[{_STOP}]|$)")
_WINDOWS_HOME = re.compile(
    r"(?P<home>(?:(?<![A-Za-z])[A-Za-z]:|\\\\[\w.$-]+(?:\\+[\w.$-]+)?)[\\/]+(?:Users|home|Documents and Settings)[\\/]+"
    r"(?P<user>[^\\/:*?\"<>|\r\n]+))(?=[\\/]|$)",
    re.IGNORECASE,
)
_TILDE = re.compile(r"(?<![\w)\]}/\\~>])~(?P<user>[A-Za-z_][\w.-]*)(?=/)")  # ~ada/work
_AFS = re.compile(rf"(?P<start>/afs/[^{_STOP}]+/(?:users?|u|home)/(?:[a-z]/){{0,2}})(?P<user>[^{_STOP}]+)")
# Folders that clusters give every user; nothing else tells that it is one, so it is known by this place alone.
_SCRATCH = re.compile(
    r"(?<![\w.~>-])(?P<start>/(?:[\w.+-]+/){0,3}?(?:[\w-]*scratch[0-9]*|fsx|checkpoint|pytest-of-)(?:/users?)?"
    rf"(?:/|(?<=pytest-of-)))(?P<user>[^{_STOP}]+)(?=/)"
)
_SHARE = re.compile(r"(?<![\w\\:])(?P<start>\\\\)(?P<host>[\w.-]+)(?=\\)")
_INDUCTOR = re.compile(r"(?P<start>torchinductor_)(?P<user>[^/\\\s<>]+)(?=[/\\])")
_URL_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY_SECRET = re.compile(
    r"(?P<start>[?&;](?:x-(?:amz|goog)-(?:credential|signature|security-token)|awsaccesskeyid|googleaccessid|signature"
    r"|sig|(?:[a-z]+[_-])?(?:token|secret|password|api-?_?key|access-?_?key))=)[^&;#\s\"'<>]+",
    re.IGNORECASE,
)
# Keys that tell themselves by how they begin: of clouds, forges, hubs and chat services; tokens of three parts.
_SECRET = re.compile(
    r"(?<![\w-])(?:A(?:KIA|SIA)[0-9A-Z]{16}|AIza[\w-]{35}|hf_[A-Za-z0-9]{30,}|gh[oprsu]_[A-Za-z0-9]{30,}"
    r"|github_pat_\w{30,}|glpat-[\w-]{20,}|sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)"
)
_EMAIL = re.compile(
    r"(?<![\w.+-])[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+(?!(?:so|dll|dylib|py)\b)[A-Za-z]{2,24}(?![\w-]|\.\w)"
)
_IPV4 = re.compile(
    r"(?<![\w.=-])(?P<url>(?<=://))?(?P<ip>[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?P<port>:[0-9]{2,5}|/[0-9]{1,2})?(?![\w.])"
)
_IPV6 = re.compile(
    r"(?<![\w:])(?:fe80::[0-9a-f:]+|(?:[0-9a-f]{1,4}:){2,6}(?::[0-9a-f]{1,4}){1,5}|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{2}:){5}[0-9a-f]{2})(?![\w:])",
    re.I,
)
# Names of hosts that tell themselves: of clouds and local networks, or of three parts and more with a number.
# A pod's end in a cluster's own alphabet, which has no vowels: of its set of replicas, and of itself.
_POD = re.compile(r"(?<![\w.-])[a-z][a-z0-9-]*-[bcdf-hj-np-tv-xz2456789]{8,10}-[bcdf-hj-np-tv-xz2456789]{5}(?![\w-])")
_DOMAIN = r"(?:\.[a-z0-9-]+)*\.(?:internal|local|localdomain|lan|corp|intranet|com|net|org|edu|gov)"
_SELF_TELLING = re.compile(
    r"(?<![\w./@-])(?:ip(?:-[0-9]{1,3}){4}"
    r"|(?=[a-z0-9-]*[0-9-])[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*\.(?:internal|local|localdomain|lan|corp|intranet)"
    r"|(?=[a-z-]*[0-9])[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+){1,4}\.(?:com|net|org|edu|gov))(?![\w-]|\.\w)",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"[/\\@]|[0-9]\.[0-9]+\.[0-9]|[0-9a-f]:|fe80|A[KS]IA|AIza|hf_|gh._|_pat_|glpat|sk-|xox|eyJ"
    r"|-[bcdf-hj-np-tv-xz2456789]{5}(?![\w-])|[?&;]\w+=|\.(?:internal|local|lan|corp|intra|com|net|org|edu|gov)|ip-"
)
_PATH = re.compile(
    rf"(?<![\w)\].~>-])(?:[A-Za-z]:|~[0-9]*)?(?:[\\/]+[^{_STOP}]+){{2,}}|(?<![\w/\\])[\w.+-]+(?:[\\/][\w.+-]+)+"
)
_SEPARATORS = re.compile(r"([\\/]+)")
# Keys that jobs and clusters add to those that every header has: SLURM_JOB_USER, SLURM_SUBMIT_HOST, MY_POD_NAME.
_KIND_OF_LAST_WORD = (
    ("user", re.compile(r"(?:^|_)(?:user|login|account|owner)(?:_?name)?$", re.IGNORECASE)),
    ("host", re.compile(r"(?:^|_)(?:host|node|pod)(?:_?name|_?list)?$", re.IGNORECASE)),
    ("ip", re.compile(r"(?:^|_)ip(?:_?addr(?:ess)?)?$", re.IGNORECASE)),
)
_TRACE_OF_HOST = re.compile(r"(?P<host>.+?)(?P<rest>_[0-9]+\.[0-9]{10,}(?:\.pt)?\.trace\.json.*)", re.DOTALL)
_RANK = re.compile(r"[-_.]?rank[-_\[]?[0-9]+.*", re.IGNORECASE | re.DOTALL)


class Redactor:
    """Finds and remembers what tells whose a trace is; every value keeps its placeholder."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}
        self._exact_homes: list[str] = []
        self._user_word: re.Pattern[str] | None = None
        self._token: re.Pattern[str] | None = None
        self._kind_of_token: dict[str, str] = {}

    # Learning

    def learn_header(self, header: object) -> None:
        """Note the values of keys that name a user, a host, a job or a home folder, at any depth."""
        for kind, value in identities.named_values(header):
            if kind == "home":
                self.learn_home(value)
            elif kind == "path":
                self.learn_texts([value])
                self.file_name(_SEPARATORS.split(value)[-1])
            else:
                self._learn(kind, value)

    def learn_home(self, path: str) -> None:
        """Note a home folder that its path does not tell as one."""
        if len(path.strip("/\\")) > 1 and path not in self._exact_homes:
            self._exact_homes.append(path.rstrip("/\\"))
            self._learn("user", _SEPARATORS.split(path.rstrip("/\\"))[-1])

    def learn_texts(self, texts: Iterable[str]) -> None:
        """Note the users whose folders the texts name, to know them in other paths."""
        for text in texts:
            if any(mark in text for mark in identities.HOME_MARKS):
                for pattern in (_HOME, _WINDOWS_HOME, _INDUCTOR):
                    for match in pattern.finditer(text):
                        self._learn("user", match["user"])

    def _learn(self, kind: str, value: str) -> None:
        if kind == "user" and not identities.is_telling_user(value):
            return
        self._placeholder(kind, value)
        if kind == "user":
            self._user_word = _words(self._known["user"], "[A-Za-z0-9]", "")
        elif kind in ("host", "job"):
            for name in {value, value.partition(".")[0]} if kind == "host" else {value}:
                if identities.is_telling_word(name):
                    self._kind_of_token[name] = kind
                    self._known[kind].setdefault(name, self._known[kind][value])
            self._token = _words(self._kind_of_token, r"[\w-]", f"(?:{_DOMAIN})?") if self._kind_of_token else None

    def _placeholder(self, kind: str, value: str) -> str:
        known = self._known.setdefault(kind, {})
        cut = value.rstrip("…")
        if cut != value:  # shortened for a table: whichever value begins so
            value = next((whole for whole in known if whole.startswith(cut)), value)
        if value not in known:
            number = len(set(known.values())) + 1
            mark = "" if number == 1 else str(number)
            known[value] = f"~{mark}" if kind == "home" else f"<{kind}{mark}>"
        return known[value]

    # Replacing

    def text(self, text: str) -> str:
        """The text with placeholders; the same object where nothing is replaced."""
        if self._token is not None:
            text = self._token.sub(self._token_of, text)
        if not _HINT.search(text):
            return text
        text = _SECRET.sub(_HIDDEN, _QUERY_SECRET.sub(rf"\g<start>{_HIDDEN}", text))
        text = _URL_USER.sub(lambda match: self._placeholder("user", match[0][:-1]) + "@", text)
        text = _EMAIL.sub(self._whole("email"), text)
        text = self._without_homes(_TILDE.sub(self._home, text))
        text = _INDUCTOR.sub(self._inductor, text)
        for pattern in (_SCRATCH, _AFS):
            text = pattern.sub(self._place, text)
        if self._user_word is not None and self._user_word.search(text):
            text = _PATH.sub(lambda match: self._without_users(match[0]), text)
        text = _SHARE.sub(lambda match: match["start"] + self._placeholder("host", match["host"]), text)
        text = _SELF_TELLING.sub(self._whole("host"), _POD.sub(self._whole("host"), text))
        text = _IPV6.sub(self._whole("ip"), text)
        return _IPV4.sub(self._ipv4, text)

    def file_name(self, name: str) -> str:
        """A file's name: as a text, and without the host that profilers put before the process and the time."""
        found = _TRACE_OF_HOST.fullmatch(name)
        if found and not identities.is_common(found["host"]):
            host, rank = found["host"], _RANK.search(found["host"])
            kept = rank[0] if rank and rank.start() else ""
            host = host.removesuffix(kept)
            if not identities.is_common(host):
                self._learn("host", host)
                name = self._placeholder("host", host) + kept + found["rest"]
        if self._user_word is not None:
            name = self._user_word.sub(lambda match: self._placeholder("user", match[0]), name)
        return self.text(name)

    def path(self, path: str) -> str:
        """The path of a file: its folders as a text, the last part as a file's name."""
        *folders, name = _SEPARATORS.split(path)
        return self.text("".join(folders) + "x").removesuffix("x") + self.file_name(name)

    def value(self, value: object, key: str = "") -> object:
        """A decoded JSON value; what a key names as a user, a host or a job is replaced whole."""
        if isinstance(value, dict):
            return {self.text(str(name)): self.value(inner, str(name)) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner, key) for inner in value]
        return self.value_of(key, value) if isinstance(value, str) else value

    def value_of(self, key: str, value: str) -> str:
        """The text of a key: whole, where the key names a user, a host, a job or a credential."""
        if not value or identities.is_version(key):
            return value
        if credentials.secret_names({key: value}):
            return _HIDDEN
        kind = identities.kind_of_key(key) or next((kind for kind, told in _KIND_OF_LAST_WORD if told.search(key)), "")
        if kind == "path":
            return self.path(value)
        return self._placeholder(kind, value) if kind in ("user", "host", "job", "ip") else self.text(value)

    def _whole(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda match: self._placeholder(kind, match[0])

    def _token_of(self, match: re.Match[str]) -> str:
        name = match["word"]
        return self._placeholder(self._kind_of_token[name], name)

    def _without_homes(self, text: str) -> str:
        for home in self._exact_homes:
            if home in text:
                text = re.sub(rf"(?<![\w.~>-]){re.escape(home)}(?=[{_STOP}]|$)", self._whole("home"), text)
        if not any(mark in text for mark in identities.HOME_MARKS):
            return text
        for pattern in (_WINDOWS_HOME, _HOME):
            text = pattern.sub(self._home, text)
        return _ROOT.sub(self._whole("home"), text)

    def _home(self, match: re.Match[str]) -> str:
        self._learn("user", match["user"].rstrip("…"))
        return self._placeholder("home", match.groupdict().get("home") or match[0])

    def _place(self, match: re.Match[str]) -> str:
        """A folder of a user that only its place tells: the name may be a word, so it is known elsewhere by no one."""
        user: str = match["user"]
        if not identities.is_telling_user(user) or user.startswith("<"):
            return match[0]
        return str(match["start"]) + self._placeholder("user", user)

    def _inductor(self, match: re.Match[str]) -> str:
        user: str = match["user"]
        if not identities.is_telling_user(user):
            return match[0]
        self._learn("user", user)
        return str(match["start"]) + self._placeholder("user", user)

    def _without_users(self, path: str) -> str:
        """A path without known users, down to a folder of installed packages; a relative one ends in a file."""
        is_absolute = path[:1] in "/\\~" or path[1:2] == ":"
        parts = _SEPARATORS.split(path)
        if not is_absolute and "." not in parts[-1]:
            return path
        for at, part in enumerate(parts):
            if part in identities.INSTALLED or part.startswith("python3"):
                break
            if is_absolute and self._user_word is not None:
                parts[at] = self._user_word.sub(lambda match: self._placeholder("user", match[0]), part)
            elif part in self._known["user"] and at < len(parts) - 1:
                parts[at] = self._placeholder("user", part)
        return "".join(parts)

    def _ipv4(self, match: re.Match[str]) -> str:
        numbers = [int(part) for part in match["ip"].split(".")]
        is_address = max(numbers) < 256 and (
            match["port"] is not None or match["url"] is not None or identities.is_private(numbers)
        )
        return self._placeholder("ip", match["ip"]) + (match["port"] or "") if is_address else match[0]


def _words(names: Mapping[str, object], inside: str, more: str) -> re.Pattern[str]:
    """Any of the names as a word of its own, the longest first."""
    choices = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    return re.compile(rf"(?<!{inside})(?P<word>{choices}){more}(?!{inside})")
