"""What databases are about: in each domain owners have things, and things have events. Words only; no rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evolvent.tasks.base import Split

# what is asked in, what may be stored instead, and how many of these make one
MONEY, WEIGHT = ("dollars", "cents", 100), ("kilograms", "grams", 1000)
TIME, LENGTH = ("hours", "minutes", 60), ("metres", "centimetres", 100)
NONE = ("", "", 1)


@dataclass(frozen=True)
class Kind:
    """One kind of things, a table of its own.

    one, many  the noun, singular and plural
    label      what it is called by
    texts      attribute -> its values
    numbers    attribute -> (least, most, (unit asked in, unit that may be stored, factor))
    date       an attribute, or empty
    """

    one: str
    many: str
    label: str
    texts: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, tuple[int, int, tuple[str, str, int]]] = field(default_factory=dict)
    date: str = ""


@dataclass(frozen=True)
class Domain:
    """Owners, things, events: each thing has an owner, each event a thing."""

    name: str
    kinds: tuple[Kind, Kind, Kind]


CITIES = ("york", "new york", "cork", "port louis", "st louis", "oslo", "bath")
STATES = ("paid", "unpaid", "open", "sent back")
ACTIVE = ("active", "inactive", "on hold")

SHOP = Domain(
    "shop",
    (
        Kind(
            "customer",
            "customers",
            "name",
            {"city": CITIES, "segment": ("home", "home office", "retail", "trade")},
            {"age": (18, 80, NONE)},
            "signup date",
        ),
        Kind(
            "basket",
            "baskets",
            "code",
            {"status": STATES, "channel": ("phone", "mobile phone", "web", "shop floor")},
            {"total price": (5, 400, MONEY), "weight": (1, 40, WEIGHT)},
            "purchase date",
        ),
        Kind(
            "parcel",
            "parcels",
            "code",
            {"carrier": ("post", "air post", "road", "rail road"), "size": ("small", "large", "extra large")},
            {"delivery time": (2, 90, TIME)},
            "delivery date",
        ),
    ),
)
CLINIC = Domain(
    "clinic",
    (
        Kind(
            "doctor",
            "doctors",
            "name",
            {"speciality": ("surgery", "heart surgery", "skin", "eyes"), "city": CITIES},
            {"salary": (40, 180, MONEY)},
            "hiring date",
        ),
        Kind(
            "patient",
            "patients",
            "name",
            {"gender": ("male", "female"), "insurance": ("state", "private", "none", "semi private")},
            {"weight": (45, 120, WEIGHT), "age": (1, 95, NONE)},
            "birth date",
        ),
        Kind(
            "visit",
            "visits",
            "code",
            {"reason": ("fever", "hay fever", "check up", "injury"), "state": STATES},
            {"waiting time": (1, 9, TIME), "fee": (20, 300, MONEY)},
            "visit date",
        ),
    ),
)
SCHOOL = Domain(
    "school",
    (
        Kind(
            "teacher",
            "teachers",
            "name",
            {"subject": ("art", "martial art", "physics", "music"), "city": CITIES},
            {"salary": (30, 90, MONEY)},
            "hiring date",
        ),
        Kind(
            "course",
            "courses",
            "title",
            {"level": ("basic", "very basic", "advanced"), "language": ("english", "old english", "french")},
            {"length": (4, 60, TIME), "seats": (8, 60, NONE)},
            "start date",
        ),
        Kind(
            "exam",
            "exams",
            "code",
            {"result": ("passed", "not passed", "passed late"), "room": ("hall", "city hall", "lab")},
            {"score": (1, 60, NONE)},
            "exam date",
        ),
    ),
)
FLEET = Domain(
    "fleet",
    (
        Kind(
            "depot",
            "depots",
            "name",
            {"region": ("east", "north east", "west", "south west"), "status": ACTIVE},
            {"rent": (200, 900, MONEY)},
            "opening date",
        ),
        Kind(
            "truck",
            "trucks",
            "plate",
            {"fuel": ("gas", "natural gas", "diesel", "bio diesel"), "status": ACTIVE},
            {"height": (2, 6, LENGTH), "load": (20, 95, WEIGHT)},
            "purchase date",
        ),
        Kind(
            "trip",
            "trips",
            "code",
            {"cargo": ("food", "frozen food", "steel", "wood"), "weather": ("dry", "rain", "heavy rain")},
            {"duration": (1, 14, TIME), "toll": (3, 90, MONEY)},
            "trip date",
        ),
    ),
)
FARM = Domain(
    "farm",
    (
        Kind(
            "farmer",
            "farmers",
            "name",
            {"village": ("hill", "east hill", "mill", "wind mill"), "status": ACTIVE},
            {"age": (20, 75, NONE)},
            "joining date",
        ),
        Kind(
            "field",
            "fields",
            "name",
            {"crop": ("corn", "sweet corn", "wheat", "buck wheat"), "soil": ("clay", "sand", "red clay")},
            {"width": (10, 90, LENGTH), "lease": (50, 600, MONEY)},
            "sowing date",
        ),
        Kind(
            "harvest",
            "harvests",
            "code",
            {"quality": ("good", "very good", "poor"), "buyer": ("mill", "paper mill", "market")},
            {"weight": (10, 95, WEIGHT)},
            "harvest date",
        ),
    ),
)
CINEMA = Domain(
    "cinema",
    (
        Kind(
            "studio",
            "studios",
            "name",
            {"country": ("guinea", "new guinea", "ireland", "northern ireland"), "status": ACTIVE},
            {"budget": (100, 900, MONEY)},
            "founding date",
        ),
        Kind(
            "film",
            "films",
            "title",
            {"genre": ("drama", "crime drama", "comedy", "black comedy"), "colour": ("colour", "false colour", "mono")},
            {"running time": (1, 4, TIME), "cost": (20, 400, MONEY)},
            "release date",
        ),
        Kind(
            "screening",
            "screenings",
            "code",
            {"place": ("hall", "town hall", "open air"), "state": ("sold", "unsold", "cancelled")},
            {"ticket price": (4, 30, MONEY)},
            "screening date",
        ),
    ),
)
GYM = Domain(
    "gym",
    (
        Kind(
            "trainer",
            "trainers",
            "name",
            {"discipline": ("boxing", "kick boxing", "yoga", "hot yoga"), "city": CITIES},
            {"wage": (15, 80, MONEY)},
            "hiring date",
        ),
        Kind(
            "member",
            "members",
            "name",
            {"plan": ("gold", "rose gold", "silver", "trial"), "gender": ("male", "female")},
            {"weight": (45, 120, WEIGHT), "age": (16, 80, NONE)},
            "joining date",
        ),
        Kind(
            "session",
            "sessions",
            "code",
            {"mood": ("tired", "not tired", "fit"), "state": STATES},
            {"duration": (1, 5, TIME)},
            "session date",
        ),
    ),
)
HARBOUR = Domain(
    "harbour",
    (
        Kind(
            "company",
            "companies",
            "name",
            {"country": ("guinea", "new guinea", "norway", "chile"), "status": ACTIVE},
            {"capital": (100, 900, MONEY)},
            "founding date",
        ),
        Kind(
            "ship",
            "ships",
            "name",
            {"kind": ("ferry", "car ferry", "tanker", "gas tanker"), "flag": ("red", "dark red", "blue")},
            {"draught": (2, 14, LENGTH), "crew": (4, 60, NONE)},
            "launch date",
        ),
        Kind(
            "call",
            "calls",
            "code",
            {"pier": ("north", "far north", "south"), "state": STATES},
            {"stay": (2, 90, TIME), "fee": (20, 300, MONEY)},
            "arrival date",
        ),
    ),
)
MUSEUM = Domain(
    "museum",
    (
        Kind(
            "artist",
            "artists",
            "name",
            {"school": ("cubism", "post cubism", "baroque", "late baroque"), "city": CITIES},
            {"age": (20, 95, NONE)},
            "birth date",
        ),
        Kind(
            "painting",
            "paintings",
            "title",
            {"medium": ("oil", "oil pastel", "ink", "red ink"), "state": ("restored", "not restored", "damaged")},
            {"width": (1, 6, LENGTH), "insured value": (50, 900, MONEY)},
            "purchase date",
        ),
        Kind(
            "loan",
            "loans",
            "code",
            {"borrower": ("town", "old town", "school"), "status": STATES},
            {"fee": (20, 300, MONEY)},
            "loan date",
        ),
    ),
)
HOTEL = Domain(
    "hotel",
    (
        Kind(
            "house",
            "houses",
            "name",
            {"city": CITIES, "class": ("comfort", "high comfort", "plain")},
            {"tax": (100, 900, MONEY)},
            "opening date",
        ),
        Kind(
            "room",
            "rooms",
            "code",
            {"view": ("sea", "black sea", "garden", "rose garden"), "state": ("clean", "unclean", "closed")},
            {"width": (2, 9, LENGTH), "rate": (30, 400, MONEY)},
            "renovation date",
        ),
        Kind(
            "stay",
            "stays",
            "code",
            {"meal": ("board", "half board", "none"), "payment": STATES},
            {"cleaning time": (1, 6, TIME)},
            "arrival date",
        ),
    ),
)

DOMAINS: Mapping[Split, tuple[Domain, ...]] = {
    "train": (SHOP, CLINIC, SCHOOL, FLEET, FARM),
    "gate": (CINEMA, GYM),
    "test": (HARBOUR, MUSEUM, HOTEL),
}
