"""What strategies begin with and are built from: the seed program, components of which many do harm, a fixed filter."""

from __future__ import annotations

from evolvent.tasks.worlds.curation.texts import CATEGORIES

HEAD = '''"""Strategies for a noisy corpus: what is kept of a document, one function for each category."""

import html
import re


def repaired(match):
    """A run of characters that are not ASCII, read as UTF-8 if that is what it was."""
    try:
        return match[0].encode("cp1252").decode("utf-8")
    except UnicodeError:
        return match[0]
'''

FUNCTION = '''

# EVOLVE-BLOCK-START
def clean_{category}(text):
    """What is kept of a document of {category}; None drops it."""
{rules}
    return text
# EVOLVE-BLOCK-END
'''
AS_IT_IS = """    lines = text.split("\\n")
    text = "\\n".join(lines)"""


def program(rules: str) -> str:
    """A program with the same rules for all categories."""
    return HEAD + "".join(FUNCTION.format(category=c, rules=rules) for c in CATEGORIES)


SEED = program(AS_IT_IS)

# What one would write by hand for all of a crawl: tags and entities go, then lines that sell or that every site has,
# lines of a single word, and lines that were there before (after the rules of C4, arXiv 1910.10683, without those that
# leave nothing of code and tables: a sentence's end at the end of each line, no braces).
FILTER = program("""    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    seen, lines = set(), []
    for line in text.split("\\n"):
        if len(line.split()) < 2 or line in seen:
            continue
        if any(word in line.lower() for word in ("cookie", "javascript", "copyright", "http", "www.", "read more")):
            continue
        seen.add(line)
        lines.append(line)
    if len(lines) < 3:
        return None
    text = "\\n".join(lines)""")

# Components by what they are about. For each kind of issue some do what they should, in some category, some do not.
ABOUT = {
    "spam": (
        'if text.count("!") > 8:\n    return None',
        'if text.count("http") > 1:\n    return None',
        "if len(text) < 600:\n    return None",
        "if len(set(text.split())) < 0.5 * len(text.split()):\n    return None",
    ),
    "stamps": (
        'lines = [re.sub(r"^\\[?[\\d:]+\\]?\\s+", "", x) for x in lines]',
        'lines = [re.sub(r"^\\S+\\s+", "", x) for x in lines]',
        'lines = [x for x in lines if not re.match(r"\\[?\\d", x)]',
        'text = re.sub(r"\\d+", "0", text)',
    ),
    "markup": (
        'text = re.sub(r"<[^>]*>", "", text)',
        'text = re.sub(r"</?[a-z]+( [^<>]*)?>", "", text)',
        'lines = [x for x in lines if "<" not in x]',
        'if "</" in text:\n    return None',
    ),
    "entities": (
        "text = html.unescape(text)",
        'text = re.sub(r"&[a-z]+;", "", text)',
        'lines = [x for x in lines if "&" not in x]',
    ),
    "mojibake": (
        'text = re.sub("[^\\\\x00-\\\\x7f]+", repaired, text)',
        'text = re.sub("[^\\\\x00-\\\\x7f]+", "", text)',
        'if re.search("[^\\\\x00-\\\\x7f]{2}", text):\n    return None',
    ),
    "boilerplate": (
        'lines = [x for x in lines if x.count("|") < 2]',
        "lines = lines[2:]",
        "lines = lines[:-2]",
        "lines = [x for x in lines if len(x.split()) > 2]",
    ),
    "promotion": (
        'lines = [x for x in lines if "http" not in x]',
        'lines = [x for x in lines if "www." not in x]',
        'lines = [x for x in lines if "!!!" not in x]',
        'lines = [x for x in lines if "!" not in x]',
    ),
    "cut": (
        'lines = [x for x in lines if "..." not in x]',
        'lines = [x for x in lines if x.endswith((".", "!", "?"))]',
    ),
    "repeats": (
        "lines = list(dict.fromkeys(lines))",
        "lines = [x for i, x in enumerate(lines) if i == 0 or x != lines[i - 1]]",
        "lines = sorted(set(lines))",
    ),
}
FORMAT = (  # about nothing in particular
    "lines = [x.strip() for x in lines]",
    "lines = [x for x in lines if x.strip()]",
    'text = re.sub(r"\\s+", " ", text)',
    "text = text.lower()",
)
COMPONENTS = (*(component for several in ABOUT.values() for component in several), *FORMAT)
