"""Whether prose says what the evidence says: one rule a module, and the judge that applies them all.

A rule takes a slot's text and what is known of the run, and yields what is wrong and how to mend it. It never guesses
at meaning: what it cannot tell it lets pass, and what it refuses can be said with the evidence's own words.
"""

from __future__ import annotations
