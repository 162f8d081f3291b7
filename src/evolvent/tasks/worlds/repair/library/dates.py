"""Functions on dates, times and durations."""

from __future__ import annotations

from evolvent.tasks.worlds.repair.library.draws import Draw


def leap(year: int) -> bool:
    """Whether a year of the Gregorian calendar has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in(year: int, month: int) -> int:
    """Days of a month."""
    if month == 2:
        return 29 if leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def day_of_year(year: int, month: int, day: int) -> int:
    """1 for the first of January; `ValueError` for a day that there is not."""
    if month < 1 or month > 12 or day < 1 or day > days_in(year, month):
        raise ValueError("no such day")
    total = day
    for before in range(1, month):
        total += days_in(year, before)
    return total


def weekday(year: int, month: int, day: int) -> int:
    """0 for Monday (Zeller's congruence)."""
    if month < 3:
        month += 12
        year -= 1
    century, rest = divmod(year, 100)
    number = (day + 13 * (month + 1) // 5 + rest + rest // 4 + century // 4 + 5 * century) % 7
    return (number + 5) % 7


def next_day(year: int, month: int, day: int) -> list:
    """The date of the day after."""
    if day < days_in(year, month):
        return [year, month, day + 1]
    if month < 12:
        return [year, month + 1, 1]
    return [year + 1, 1, 1]


def clock(seconds: int) -> str:
    """Seconds as h:mm:ss, or m:ss below an hour; a minus before negative ones."""
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours > 0:
        return sign + str(hours) + ":" + str(minutes).zfill(2) + ":" + str(rest).zfill(2)
    return sign + str(minutes) + ":" + str(rest).zfill(2)


def seconds_of(text: str) -> int:
    """1h30m5s as seconds; units s, m, h, d. `ValueError` for anything else."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    total, digits = 0, ""
    for sign in text:
        if sign.isdigit():
            digits += sign
        elif sign in units and digits:
            total += int(digits) * units[sign]
            digits = ""
        else:
            raise ValueError("no duration")
    if digits or not text:
        raise ValueError("no duration")
    return total


def working_days(first: int, days: int, holidays: list) -> int:
    """Of `days` days from weekday `first` on (0 is Monday) those that are no weekend and, by number, no holiday."""
    count = 0
    for i in range(days):
        if (first + i) % 7 < 5 and i not in holidays:
            count += 1
    return count


CASES: dict[str, Draw] = {
    "day_of_year": lambda r: [
        r.choice([1900, 2000, 2023, 2024]),
        r.randint(0, 13),
        r.choice([r.randint(0, 31), r.randint(28, 31)]),
    ],
    "weekday": lambda r: [r.randint(1890, 2100), r.randint(1, 12), r.randint(1, 28)],
    "next_day": lambda r: [r.choice([1900, 2000, 2023, 2024]), r.choice([1, 2, 4, 12]), r.randint(27, 30)],
    "clock": lambda r: [r.choice([r.randint(-99, 99), r.randint(0, 9999), r.randint(3500, 3700)])],
    "seconds_of": lambda r: [
        "".join(r.choice(["1", "20", "7"]) + r.choice("smhd") for _ in range(r.randint(0, 3)))
        + r.choice(["", "", "", "5", "x"])
    ],
    "working_days": lambda r: [r.randint(0, 6), r.randint(0, 16), sorted(r.sample(range(16), r.randint(0, 3)))],
}
