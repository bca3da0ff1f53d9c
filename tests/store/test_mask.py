"""Secrets never reach the disk; numbers of the market always do. Keys are put together here, none stands in the file."""

from __future__ import annotations

import json
import re
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_plugin.store.mask import mask_json, mask_text, might_hold_secret
from hermes_memory_plugin.store.mask_personal import is_card, is_resident_id

MIXED = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
UPPER = "Z7Y6X5W4V3U2T2S3"
UUID = "123e4567-e89b-42d3-a456-426614174000"
PASSWORD = "hunter" + "2!x"


def pem(newline: str = "\n", kind: str = "RSA ") -> str:
    body = newline.join([MIXED + "+/" * 10, MIXED + "==", HEX])
    edge = "-" * 5
    return newline.join([f"{edge}BEGIN {kind}PRIVATE KEY{edge}", body, f"{edge}END {kind}PRIVATE KEY{edge}"])


# (text before, the secret, text after)
SECRETS: dict[str, tuple[str, str, str]] = {
    "openai": ("", "sk" + "-" + MIXED, ""),
    "openai-project": ("", "sk" + "-proj-" + MIXED[:9] + "_" + MIXED, " is it"),
    "anthropic": ("key ", "sk" + "-ant-api03-" + MIXED + "-_" + MIXED + "AA", ""),
    "deepseek": ("配置：", "sk" + "-" + HEX, "。"),
    "aws-id": ("", "AK" + "IA" + UPPER, ""),
    "aws-secret": ("aws_secret_access_key = ", MIXED + "/+x", "\n"),
    "google": ("", "AI" + "za" + MIXED[:35], ""),
    "google-broken": ("", "AI" + "za" + "Sy-aB3cD4_eF5gH6-iJ7kL8_mN9oP0-qR1sT2", ""),
    "github": ("", "gh" + "p_" + MIXED[:36], ""),
    "github-fine": ("", "github" + "_pat_" + MIXED[:22] + "_" + MIXED + MIXED[:19], ""),
    "gitlab": ("", "gl" + "pat-" + "a1b-C2d_E3f-G4h_I5j-", ""),
    "slack": ("", "xo" + "xb-123456789012-123456789012-" + MIXED[:24], ""),
    "stripe": ("", "sk" + "_live_" + MIXED[:24], ""),
    "huggingface": ("", "h" + "f_" + string.ascii_letters[:34], ""),
    "aliyun": ("", "LT" + "AI" + MIXED[:20], ""),
    "npm": ("", "np" + "m_" + MIXED[:36], ""),
    "telegram": ("", "123456789" + ":AA" + MIXED[:33], ""),
    "telegram-url": ("https://api.telegram.org/", "bot" + "123456789" + ":AA" + MIXED[:33], "/getMe"),
    "cookie": ("Cookie: a=1; session=", MIXED[:20], "; theme=dark"),
    "full-width": ("密钥 ", "ｓｋ－" + "proj-" + MIXED, " 。"),
    "jwt": ("", "ey" + "J" + MIXED[:20] + ".ey" + "J" + MIXED + "." + MIXED, ""),
    "tushare-env": ("export TUSHARE_TOKEN=", "0123456789abcdef" * 3 + "01234567", "\n"),
    "tushare-call": ("ts.set_token('", "0123456789abcdef" * 3 + "01234567", "')"),
    "tushare-pro": ('ts.pro_api("', "0123456789abcdef" * 3 + "01234567", '")'),
    "bearer": ("curl -H 'Authorization: Bearer ", MIXED, "' https://api.example.com"),
    "basic": ("Authorization: Basic ", "dXNlcjpw" + "YXNz", "\n"),
    "x-api-key": ("X-Api-Key: ", MIXED[:20], "\n"),
    "curl-user": ("curl -u ", "admin:" + PASSWORD, " https://example.com"),
    "postgres": ("postgres://user:", PASSWORD, "@db.example.com:5432/x"),
    "url-odd": ("mysql://root:", "p@ss/w0rd", "@10.0.0.1/db"),
    "redis": ("redis://:", PASSWORD, "@h:6379/0"),
    "url-token": ("git clone https://", MIXED[:30], "@github.com/x/y"),
    "url-query": ("https://api.example.com/v1?symbol=AAPL&apikey=", MIXED[:16], "&period=2024"),
    "password": ("password=", PASSWORD, " next"),
    "password-json": ('{"db_password": "', PASSWORD, '", "n": 1}'),
    "password-escaped": ('{\\"password\\": \\"', PASSWORD, '\\", \\"n\\": 1}'),
    "password-quote": ('{"password": "', 'hun\\"ter2', '", "n": 1}'),
    "password-sentence": ("the password is ", PASSWORD[:7], ", he said"),
    "password-xml": ("<password>", PASSWORD, "</password>"),
    "password-attribute": ('<add key="Password" value="', PASSWORD, '"/>'),
    "password-long": ("password=", "aB3$" * 400, " next"),
    "chinese-password": ("密码：", "abc123", "，请保管"),
    "chinese-password-is": ("WiFi密码为", "abc123", "。"),
    "chinese-key": ("密钥: ", MIXED[:12], "\n"),
    "chinese-password-bare": ("密码", "CorrectHorse" + "9", "，"),
    "english-name-chinese-is": ("api key 是 ", MIXED[:24], "。"),
    "tushare-chinese": ("我的tushare token是", "0123456789abcdef" * 3 + "01234567", "。"),
    "chinese-token": ("令牌=", MIXED[:12], ""),
    "secret": ("'client_secret' => '", MIXED[:12], "'"),
    "yaml": ("api_key: ", MIXED[:20], "\n"),
    "vendor": ("finnhub: ", MIXED[:20].lower(), "\n"),
    "uuid": ("HEROKU_API_KEY=", UUID, ""),
    "pem": ("key:\n", pem(), "\nend"),
    "pem-escaped": ('{"key": "', pem("\\n"), '"}'),
    "pem-cut": ("", pem()[:120], ""),
    "openssh": ("", pem(kind="OPENSSH "), ""),
    "webhook": ("post to ", "https://" + "hooks.slack.com" + "/services/T0AB/B0CD/" + MIXED[:24], " ok"),
    "resident-id": ("客户身份证号", "11010519491231002X", "，已核验"),
    "mobile": ("联系电话：", "13812345678", "。"),
    "mobile-contact": ("联系 ", "13812345678", " 即可"),
    "mobile-dial": ("打", "13812345678", "。"),
    "mobile-call": ("call ", "13812345678", " now"),
    "mobile-tel": ("tel: ", "13812345678", ""),
    "mobile-groups": ("", "138 1234 5678", " 找他"),
    "mobile-86": ("call ", "+86 138 1234 5678", " now"),
    "mobile-dashes": ("", "138-1234-5678", ""),
    "bank-card": ("银行卡号 ", "6222021234567890128", "。"),
    "bank-card-groups": ("", "4111 1111 1111 1111", ""),
}

ORDINARY = [
    "贵州茅台(600519.SH) 2024年营业总收入150,560,330,000.00元，同比增长15.66%，PE(TTM) 28.1",
    "成交额13812345678元，成交量 13812345678，市值 1381234567890",
    "营业收入13812345678元；净利润 13912345678.55 元",
    '{"total_revenue": 150560330000.0, "n_income": 13812345678, "trade_date": "20240102", "ts_code": "000001.SZ"}',
    "委托单号 202401021234567890 成交编号 6222021234567890123",
    "时间戳 1704153600000000000 与 1704153600000",
    "max_tokens: 4096, total_tokens=12345, token_type: bearer, token_count: 8",
    "token: 600519.SH 代币 token 2024Q1",
    "key: 净利润 823.5 亿元, keyword=茅台 2024, key metrics: ROE 31.2%",
    "公司密码产品收入为12.5亿元，商用密码业务增长；口令红包；令牌环网；授权码费用",
    "请输入支付密码和验证码，忘记密码怎么办？密码是由6位数字组成",
    "password: required, secret: unknown, token: None, api_key: ${API_KEY}, password=<your password>",
    "set password for the account, then go; password_policy: strong; reset your password",
    "cninfo announcementId=1219876543 orgId=gssh0600519 http://static.cninfo.com.cn/finalpage/2024-04-03/1219500000.PDF",
    "sha256: " + HEX * 2 + " md5 " + HEX + " commit " + HEX[:8] + "1a2b3c4d",
    "id " + UUID + " call_" + MIXED[:24] + " chatcmpl-" + MIXED[:24],
    "https://example.com:8080/path/@user https://user@example.com/x mailto:ir@moutai.com",
    "author_email: someone.with.a.long.name1@example.com",
    "2021 2022 2023 2024 2025 1234 5678 9012 3456",
    "2021 2022 2023 2024 与 1999-2000-2001-2002",
    "打新 13812345678股，联系人预计融资 13812345678.50 元，收盘 138 1234 5678 99",
    "密码SHA256算法与令牌ERC20标准；Cookie: theme=dark; lang=zh",
    "营收是 13812345678 key 是 净利润；ＲＯＥ ３１％ Ａ股",
    "电话 0571-28868888 传真 010-66555171 邮编 100033",
    "pwd=/root/work; OLDPWD=/tmp; cat /etc/passwd",
    "The secretary of the authority accessed key sectors; passive tokens passed the keynote.",
    "沪深300 A50ETF H股 B2B O2O 5G e5b 2024H1 2023Q4",
]


def leaks(secret: str, masked: str) -> bool:
    """Whether six characters in a row of the secret are left."""
    rest = re.sub(r"\[masked:[a-z-]+\]", " ", masked)
    return any(secret[at : at + 6] in rest for at in range(len(secret) - 5))


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_masked_whole_and_its_surroundings_stay(name: str) -> None:
    before, secret, after = SECRETS[name]
    masked = mask_text(before + secret + after)
    assert masked.startswith(before)
    assert masked.endswith(after)
    assert "[masked:" in masked
    assert not leaks(secret, masked)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_inside_json_within_json(name: str) -> None:
    text = "".join(SECRETS[name])
    for ascii_only in (False, True):
        nested = json.dumps({"stdout": "行\n" + text + "\n"}, ensure_ascii=ascii_only)
        value = {"result": nested, "list": [nested], "n": 1}
        assert might_hold_secret(json.dumps(value, ensure_ascii=False))
        masked = mask_json(value)
        assert masked["n"] == 1
        inner = json.loads(masked["result"])["stdout"]
        secret = SECRETS[name][1]
        assert not leaks(secret, inner)
        assert masked["list"] == [masked["result"]]


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert mask_text(text) == text
    assert mask_json({"result": json.dumps({"o": text})}) == {"result": json.dumps({"o": text})}


@pytest.mark.parametrize("name", SECRETS)
def test_masking_twice_changes_nothing(name: str) -> None:
    masked = mask_text("".join(SECRETS[name]))
    assert mask_text(masked) == masked


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"password": "hunter2"}, {"password": "[masked:password]"}),
        ({"password": 123456}, {"password": "[masked:password]"}),
        ({"pass" + "word": "two words"}, {"password": "two words"}),
        ({"userPwd": "x1"}, {"userPwd": "[masked:password]"}),
        ({"密码": "abc"}, {"密码": "[masked:password]"}),
        ({"api_key": "k-123456"}, {"api_key": "[masked:secret]"}),
        ({"secret": "hunter"}, {"secret": "[masked:secret]"}),
        ({"passwords": ["a", {"n": 1}]}, {"passwords": ["[masked:password]", {"n": 1}]}),
        (
            {"env": [{"name": "DB_PASSWORD", "value": "y1"}]},
            {"env": [{"name": "DB_PASSWORD", "value": "[masked:password]"}]},
        ),
        ({"phone": 13812345678}, {"phone": "[masked:phone]"}),
        ({"amount": 13812345678}, {"amount": 13812345678}),
        (
            {"token": "hello", "tokens": 99999, "max_tokens": 4096},
            {"token": "hello", "tokens": 99999, "max_tokens": 4096},
        ),
        (
            {"password": None, "secret": True, "key": "净利润"},
            {"password": None, "secret": True, "key": "净利润"},
        ),
        (
            {"password_policy": "strong", "token_type": "bearer"},
            {"password_policy": "strong", "token_type": "bearer"},
        ),
        ({"card_no": "4111 1111 1111 1111"}, {"card_no": "[masked:bank-card]"}),
        ({"身份证": "11010519491231002X"}, {"身份证": "[masked:resident-id]"}),
    ],
)
def test_a_telling_key_masks_its_value(value: dict[str, Any], masked: dict[str, Any]) -> None:
    assert mask_json(value) == masked
    assert mask_json(masked) == masked


def test_a_secret_as_a_key_is_masked_and_its_value_kept() -> None:
    one, two = "sk" + "-" + MIXED, "sk" + "-" + MIXED[::-1]
    masked = mask_json({one: 1, two: 2, "plain": 3})
    assert sorted(masked.values()) == [1, 2, 3]
    assert not any(MIXED[:8] in key or MIXED[::-1][:8] in key for key in masked)


def test_json_stays_json_when_a_number_is_masked() -> None:
    masked = mask_text('{"phone": 13812345678, "n": 1.50}')
    assert json.loads(masked) == {"phone": "[masked:phone]", "n": 1.5}


@pytest.mark.parametrize(
    ("number", "valid"),
    [
        ("11010519491231002X", True),
        ("11010519491231002x", True),
        ("110105194912310021", False),  # check digit
        ("110105194913310029", False),  # month
        ("990105194912310028", False),  # region
        ("11010529991231002X", False),  # future
        ("1101051949123100", False),
    ],
)
def test_a_resident_id_has_region_date_and_check_digit(number: str, valid: bool) -> None:
    assert is_resident_id(number) is valid


@pytest.mark.parametrize(
    ("number", "valid"),
    [
        ("4111111111111111", True),
        ("4111111111111112", False),
        ("6222021234567890128", True),
        ("1234567812345670", False),
    ],
)
def test_a_card_has_issuer_length_and_check_digit(number: str, valid: bool) -> None:
    assert is_card(number) is valid


WORDS = """password = : " ' \\ \\n sk- eyJ . :// @ 密码 ： [masked: ] -----BEGIN a1B2c3D4e5F6g7H8 138 1234 5678 手机 curl -u { } , token
Bearer \\u5bc6 6222 0212 <password> api_key"""
PIECES = st.sampled_from([*WORDS.split(), " ", "\n", "\0", "\ud800"])
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=16).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_masking_never_raises_and_is_idempotent(text: str) -> None:
    masked = mask_text(text)
    assert mask_text(masked) == masked
    might_hold_secret(text)
    might_hold_secret(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.sampled_from(list(SECRETS)), TEXTS)
def test_json_may_hold_a_secret_whenever_a_text_of_it_does(before: str, name: str, after: str) -> None:
    text = before + "".join(SECRETS[name]) + after
    if mask_text(text) != text:
        assert might_hold_secret(json.dumps({"x": text}, ensure_ascii=False))


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXTS,
        lambda x: st.lists(x) | st.dictionaries(TEXTS, x),
        max_leaves=8,
    )
)
def test_masking_json_never_raises_and_is_idempotent(value: Any) -> None:
    masked = mask_json(value)
    assert mask_json(masked) == masked


def test_nesting_without_end_never_raises() -> None:
    value: Any = "bottom"
    for _ in range(5_000):
        value = [value]
    assert mask_json(value) is not None


HOSTILE = [
    "a",
    "1",
    "=",
    "/",
    "\\",
    "\\n",
    "password=",
    '"secret":"',
    "eyJ-",
    "://a:b",
    "-----BEGIN ",
    "密码：",
    "sk-",
    "curl ",
]
HOSTILE += [
    "authorization: ",
    "138 1234 5678 ",
    "6222 0212 3456 ",
    "x=1234567890abcdef,",
    "eyJa.eyJa.",
    "key: ",
    "token token",
    "202401021234567890,7\n",
    "联系电话：13812345678\n",
    pytest.param("Cookie: a=b; ", marks=pytest.mark.slow),
    "打",
    "密码a1",
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.timeout(60)
def test_a_long_text_made_to_hurt_is_masked_in_reasonable_time(piece: str) -> None:
    # Quadratic behaviour would take hours; the limit only catches that.
    text = (piece * (300_000 // len(piece) + 1))[:300_000]
    assert len(mask_text(text)) > 0
