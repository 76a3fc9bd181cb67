"""Names of credentials that a trace's header holds."""

from __future__ import annotations

import pytest

from rooftrace.workflow.health import secret_names


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ({"metadata": {"env": {"HF_TOKEN": "hf_0123456789", "TOKENIZERS_PARALLELISM": "false"}}}, {"HF_TOKEN"}),
        ({"runs": [{"AWS_SECRET_ACCESS_KEY": "0123456789"}]}, {"AWS_SECRET_ACCESS_KEY"}),
        ({"api_key": "0123456789", "apikey": "0123456789"}, {"api_key", "apikey"}),
        ({"DB_PASSWORD": "x"}, set()),  # too short to be one
        ({"WANDB_API_KEY": 12345678}, set()),  # a number is none
        ({"token_count": {"a": 1}, "tokens": "0123456789"}, set()),
    ],
)
def test_a_text_named_like_a_credential_is_one(header, names):
    assert secret_names(header) == names
