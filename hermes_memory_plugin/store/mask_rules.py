"""What a secret looks like: tokens with a prefix of their own, telling names, and what only looks like a value."""

from __future__ import annotations

import re
from functools import lru_cache

# (label, shape). Bodies are bounded, so that no text makes the search quadratic; the caller extends a hit to the end
# of its run, so nothing of a longer secret is left over.
_SHAPES: tuple[tuple[str, str], ...] = (
    ("api-key", r"sk-(?=[\w-]{0,200}\d)[\w-]{16,300}"),
    ("api-key", r"(?:sk|rk|pk|whsec)_(?:test|live|prod)_[A-Za-z0-9]{10,200}|sk_(?=\S{0,40}\d)[\w-]{26,64}"),
    ("api-key", r"AIza[\w-]{30,60}|ya29\.[\w-]{20,300}|GOCSPX-[\w-]{20,60}"),
    ("aws-key", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aws-key", r"ABSK[A-Za-z0-9+/]{60,300}|bedrock-api-key-[\w+/=-]{10,300}"),
    ("cloud-key", r"(?:LTAI|AKID|AKLT|AQVN)[\w-]{12,60}|YC[\w-]{38}(?![\w-])"),
    ("github-token", r"gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_\w{20,255}"),
    ("gitlab-token", r"gl(?:pat|dt|ft|rt|cbt|imt|ffct|soat|oas|agent|ptt)-[\w.-]{16,300}|GR1348941[\w-]{16,60}"),
    ("gitlab-token", r"_gitlab_session=[0-9a-z]{16,64}"),
    ("slack-token", r"xox[a-z](?:\.xox[a-z])?-[\w-]{10,300}|xapp-\d-[\w-]{10,300}"),
    ("token", r"(?:hf|npm|pnu|glc|glsa|sgp|tfp|fo1|fm2|fm1[ar]|ntn|rdme|hvr|lin_(?:api|oauth))_(?=[\w+/.=-]{20})[\w+/.=-]{20,500}"),
    ("token", r"api_org_[A-Za-z0-9]{20,60}|ops_eyJ[\w+/=]{20,500}|sm_[aps]at_[A-Za-z0-9]{16}"),
    ("token", r"(?:pypi|pplx|ico|pul|xkeysib|PMAK|NRAK|NRII|NRJS|glcbt|p8e|pubkey|key|dnkey|fio-u|tk-us|s-s4t2[au][df])-(?=[\w.=-]{0,60}\d)[\w.=-]{19,500}"),
    ("token", r"FLW(?:SEC|PUB)K_TEST-[A-Za-z0-9]{12,40}(?:-X)?|API-[A-Z0-9]{26}(?![A-Za-z0-9])"),
    ("token", r"(?:rubygems|clojars|CLOJARS|shippo_(?:live|test)|duffel_(?:live|test)|pscale_(?:tkn|oauth|pw)|do[opr]_v1|shp(?:at|ca|pa|ss)|sntry[us])_[\w=.+/-]{20,500}"),
    ("token", r"(?:live|test)_(?:pub_)?[a-f0-9]{31,40}|live_(?=[\w=-]{0,40}\d)[\w=-]{40,60}|b_(?=[\w=-]{0,40}\d)[\w=-]{44}"),
    ("token", r"sq0[a-z]{3}-[\w-]{20,60}|EAA[A-Z][\w-]{22,400}|dapi[a-f0-9]{32}(?:-\d)?|SK[0-9a-fA-F]{32}(?![0-9A-Za-z])"),
    ("token", r"EZ[AT]K[A-Za-z0-9]{54}|AKCp[A-Za-z0-9]{60,80}|cmVmd[A-Za-z0-9]{50,70}|4b1d[A-Za-z0-9]{38}|ATATT3[\w=-]{60,300}"),
    ("token", r"SG\.[\w.=-]{40,100}|dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,80}|dt0[a-z]\d\d\.[A-Za-z0-9]{20,30}\.[A-Za-z0-9]{40,80}"),
    ("token", r"hv[bs]\.[\w-]{20,400}|s\.(?=[a-zA-Z]{0,23}\d)(?=\d{0,23}[A-Za-z])[A-Za-z0-9]{24}(?![A-Za-z0-9])|[ps]at\.[\w-]{22}\.[\w-]{24}\.[\w-]{20}"),
    ("token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}|pk\.[\w-]{50,100}\.[\w-]{16,30}|sl\.[\w=-]{100,200}|t1\.[\w-]{5,200}={0,2}\.[\w-]{60,120}={0,2}"),
    ("token", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,200}|(?:sc|ext|scauth|authress)_\w{5,30}\.\w{4,6}\.acc[_-][\w-]{10,32}\.[\w+/=-]{30,120}"),
    ("token", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}|AGE-SECRET-KEY-1[A-Z0-9]{40,70}"),
    ("token", r"sha256~[\w-]{40,50}|[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{50,80}|[\w~.]{3}\dQ~[\w~.-]{31,34}|[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("token", r"(?:bot)?\d{5,16}:A[\w-]{34}(?![\w-])|HRKU-[\w-]{30,80}|\d{15,16}[|%][0-9a-z_-]{27,40}"),
    ("jwt", r"ey[A-Za-z0-9][\w-]{12,4000}\.[\w/+=-]{8,8000}(?:\.[\w/+=-]{0,8000}){0,3}|ZXlK[\w+/=-]{40,8000}|eyJrIjoi[\w+/=]{40,500}"),
)  # fmt: skip
_LABELS = tuple(label for label, _ in _SHAPES)
TOKENS = re.compile("(?<![A-Za-z0-9])(?:" + "|".join(f"({shape})" for _, shape in _SHAPES) + ")")
# Webhook addresses are secrets as a whole.
WEBHOOK = re.compile(
    r"(?:https?://)?(?:hooks\.slack\.com/(?:services|workflows|triggers)/[\w+/-]{20,100}"
    r"|open\.feishu\.cn/open-apis/bot/v2/hook/[\w-]{20,60}"
    r"|[\w-]{1,63}\.webhook\.office\.com/webhookb2/[\w@/-]{40,400}"
    r"|discord(?:app)?\.com/api/webhooks/\d{10,25}/[\w-]{40,100})"
)
WEBHOOK_ANCHORS = (b"hooks.slack.com/", b"open.feishu.cn/", b"webhook.office.com/", b"/api/webhooks/")

# Services whose keys have no shape of their own: known by the name the value is assigned to.
VENDOR = re.compile(
    "adafruit|adobe|airtable|algolia|alibaba|aliyun|alphavantage|artifactory|asana|atlassian|aws_|azure|baidu|beamer"
    "|binance|bintray|bitbucket|bitfinex|bittrex|bundle_(?:enterprise|gems)_|bybit|cloudflare|codecov|cohere|coinbase"
    "|confluence|confluent|contentful|co_api|datadog|datayes|deepseek|discord|dnkey|droneci|dropbox|etsy|facebook"
    "|fastly|finicity|finnhub|flickr|freshbooks|gitter|gocardless|heroku|hubspot|intercom|jfrog|jira|joinquant"
    "|jqdata|kraken|kucoin|launchdarkly|linear|linked[_-]?in|lob|looker|mailchimp|mailgun|mapbox|mattermost|meraki"
    "|message[_-]?bird|moonshot|netlify|new[_-]?relic|nytimes|new-york-times|newyorktimes|okta|okex|okx|openai"
    "|plaid|polygon|private[_-]?ai|quandl|rapidapi|ricequant|rqdata|sendbird|sentry|snyk|sonar|sourcegraph"
    "|square|sumo|telegr|tiingo|travis|tushare|twilio|twitch|twitter|typeform|wechat|xray|yandex|zendesk|zhipu"
    "|access|auth(?!or(?!i))|api|cred|key|passw|secret|token"
)

_PLACEHOLDER = re.compile(
    r"(?i)(?:none|null|nil|true|false|undefined|required|optional|empty|missing|invalid|unknown|str(?:ing)?|bytes|int"
    r"|any|object|hidden|redacted|masked|changeme|n/?a|[*x.•#?_-]+|\$.*|\{.*|<.*|%\w+%?|\[masked:.*|\[?redacted.*"
    r"|.*\bos\.environ.*|.*getenv.*|process\.env.*|.*\(\)?|self\.\w+|[\w.]+\(.*)"
)
_NOT_NAMES = (
    "policy", "length", "len", "count", "counts", "counter", "hint", "path", "dir", "url", "uri", "endpoint", "type",
    "expiry", "expires", "expiresin", "expiresat", "expiration", "limit", "limits", "usage", "budget", "field",
    "column", "changed", "changedat", "required", "reset", "index", "manager", "strength", "size", "age", "ttl",
    "min", "max", "name", "names", "used", "cost", "price", "ratio", "rate", "status", "error", "encoding", "created",
    "updated", "file", "at",
)  # fmt: skip
_PASSWORD = re.compile(r"password|passwd|passphrase|passcode|pwd$|^pwd|dbpass$|userpass$|^pass$|密码|口令")
_SECRET = re.compile(
    r"secret|(?:api|access|private|auth|encrypt(?:ion)?|signing|sign|master|app|license|shared|account|subscription"
    r"|storage|client|deploy|service|session|ssh|webhook|admin|user)key|token$|token(?:value|key|secret)|credentials?$"
    r"|creds?$|proapi$|密钥|秘钥|私钥|令牌|授权码"
)
_RANDOM = re.compile(r"key(?:id|s)?$|token|auth(?!or(?!i))|access|api|cred")
_FLAT = re.compile(r"[^a-z0-9\u4e00-\u9fff]+")
_LETTER = re.compile(r"[A-Za-z]")
_DIGITS = b"0123456789"
_CJK = re.compile(r"[\u3400-\u9fff\uff00-\uffef]")
# Counts, amounts, dates and tickers are no keys.
_NUMBER = re.compile(r"(?i)[\d.,%+:/-]{1,24}|(?:sh|sz|bj|hk|us)?\.?\d{4,6}(?:\.[a-z]{1,4})?|\d{4}[ -]?[qh]\d")


def label_of(match: re.Match[str]) -> str:
    """The label of the shape that matched in `TOKENS`."""
    return _LABELS[(match.lastindex or 1) - 1]


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """How telling a name is: "password", "secret", "random" (only a random value is one) or ""."""
    flat = _FLAT.sub("", name.lower())
    if flat.endswith(_NOT_NAMES) or flat.endswith("tokens"):
        return ""
    if _PASSWORD.search(flat):
        return "password"
    if _SECRET.search(flat):
        return "secret"
    return "random" if _RANDOM.search(flat) else ""


def is_value(kind: str, name: str, value: str, *, quoted: bool) -> bool:
    """Whether `value`, assigned to a name of this kind, is a secret and no placeholder, count or sentence."""
    if not value or (len(value) <= 80 and _PLACEHOLDER.fullmatch(value)):
        return False
    stem = _FLAT.sub("", name.lower())
    digit = has_digit(value)
    if not digit and stem in _FLAT.sub("", value[:80].lower()):
        return False  # password=user_password
    if kind == "password":
        if value.startswith("//") or (stem in ("pwd", "oldpwd") and value[0] in "/~.") or value[1:3] == ":\\":
            return False  # an address; the working folder
        return quoted or (len(value) >= 3 and not _CJK.search(value))
    if " " in value or _CJK.search(value) or _NUMBER.fullmatch(value):
        return False
    if kind == "secret":
        return len(value) >= 6 and (digit or len(value) >= 16 or (quoted and stem != "token"))
    return is_random(value)


def has_digit(value: str) -> bool:
    """Whether there is a digit; far cheaper than a search in a long value without one."""
    return len(value.encode("ascii", "replace").translate(None, _DIGITS)) < len(value)


def is_random(value: str) -> bool:
    """Whether a value looks drawn by lot: long, digits among letters, many different characters."""
    return (
        len(value) >= 15
        and has_digit(value)
        and _LETTER.search(value) is not None
        and len(set(value[:64])) >= 8
        and "://" not in value
    )
