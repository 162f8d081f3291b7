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
AS_IT_IS = '''    lines = text.split("\\n")
    text = "\\n".join(lines)'''


def program(rules: str) -> str:
    """A program with the same rules for all categories."""
    return HEAD + "".join(FUNCTION.format(category=c, rules=rules) for c in CATEGORIES)


SEED = program(AS_IT_IS)

# What one would write by hand for all of a crawl: tags and entities go, then lines that sell or that every site has,
# lines of a single word, and lines that were there before (after the rules of C4, arXiv 1910.10683, without those that
# leave nothing of code and tables: a sentence's end at the end of each line, no braces).
FILTER = program('''    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    seen, lines = set(), []
    for line in text.split("\n"):
        if len(line.split()) < 2 or line in seen:
            continue
        if any(word in line.lower() for word in ("cookie", "javascript", "copyright", "http", "www.", "read more")):
            continue
        seen.add(line)
        lines.append(line)
    if len(lines) < 3:
        return None
    text = "\n".join(lines)''')

COMPONENTS = (
    'lines = [x for x in lines if "http" not in x]',
    'lines = [x for x in lines if "www." not in x]',
    'lines = [x for x in lines if "!!!" not in x]',
    'lines = [x for x in lines if "!" not in x]',
    'lines = [x for x in lines if "..." not in x]',
    'lines = [x for x in lines if x.count("|") < 2]',
    "lines = [x for x in lines if len(x.split()) > 2]",
    'lines = [x for x in lines if x.endswith((".", "!", "?"))]',
    'lines = [x for x in lines if not re.match(r"\\[?\\d", x)]',
    'lines = [re.sub(r"^\\[?[\\d:]+\\]?\\s+", "", x) for x in lines]',
    'lines = [re.sub(r"^\\S+\\s+", "", x) for x in lines]',
    "lines = list(dict.fromkeys(lines))",
    "lines = [x for i, x in enumerate(lines) if i == 0 or x != lines[i - 1]]",
    "lines = [x.strip() for x in lines]",
    "lines = [x for x in lines if x.strip()]",
    "lines = lines[2:]",
    "lines = lines[:-2]",
    'text = re.sub(r"<[^>]*>", "", text)',
    'text = re.sub(r"</?[a-z]+( [^<>]*)?>", "", text)',
    "text = html.unescape(text)",
    'text = re.sub(r"&[a-z]+;", "", text)',
    'text = re.sub("[^\\\\x00-\\\\x7f]+", repaired, text)',
    'text = re.sub("[^\\\\x00-\\\\x7f]+", "", text)',
    'text = re.sub(r"\\s+", " ", text)',
    'text = re.sub(r"\\d+", "0", text)',
    "text = text.lower()",
    'if text.count("!") > 8:\n    return None',
    'if text.count("http") > 1:\n    return None',
    "if len(text) < 600:\n    return None",
    "if len(set(text.split())) < 0.5 * len(text.split()):\n    return None",
)
