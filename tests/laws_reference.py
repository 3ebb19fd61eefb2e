"""The laws of synthetic traffic once more, from their description and not from the program's code.

Python's floats are IEEE doubles, each operation rounded once, so the numbers must be the same to the
last bit. Only + - * / and sqrt are used, as the program promises to.
"""
import math
import struct
from fractions import Fraction

MASK = (1 << 64) - 1
GAMMA = 0x9e3779b97f4a7c15
LN2_HI, LN2_LO = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")


def finalise(z):
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb & MASK
    return z ^ (z >> 31)


def log(x):
    """The series of artanh after taking out the power of two; x is normal here."""
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    k = (bits >> 52) - 1023
    m = x * 2.0 ** -k
    if m > 2 * float.fromhex("0x1.6a09e667f3bcdp-1"):
        m, k = m * 0.5, k + 1
    f = m - 1
    s = f / (2 + f)
    z = s * s
    total = 0.0
    for odd in range(23, 1, -2):
        total = z * (2 / odd + total)
    return k * LN2_HI - ((s * (f - total) - k * LN2_LO) - f)


def exp(x):
    if x > 709.8:
        return math.inf
    if x < -745.2:
        return 0.0
    k = int(x * float.fromhex("0x1.71547652b82fep+0") + (-0.5 if x < 0 else 0.5))
    r = (x - k * LN2_HI) - k * LN2_LO
    total = 0.0
    for i in range(14, 1, -1):
        total = (total + 1) * r / i
    y = 1 + (r + r * total)
    return y * 2.0 ** k if k >= -1022 else y * 2.0 ** (k + 60) * 2.0 ** -60


class Stream:
    """SplitMix64, a function of (seed, name, counter)."""

    def __init__(self, seed, name):
        self.state = seed
        if name:
            self.state = finalise(seed + GAMMA & MASK)
        for byte in name.encode():
            self.state = finalise((self.state ^ byte) + GAMMA & MASK)
        self.spare = None

    def u64(self):
        self.state = self.state + GAMMA & MASK
        return finalise(self.state)

    def below(self, n):
        while True:
            draw = self.u64()
            if draw >= (1 << 64) % n:
                return draw % n

    def unit(self):
        return ((self.u64() >> 12) + 0.5) * 2.0 ** -52

    def normal(self):
        """Marsaglia's polar method; the second of a pair is kept."""
        if self.spare is not None:
            spare, self.spare = self.spare, None
            return spare
        while True:
            a = 2 * self.unit() - 1
            b = 2 * self.unit() - 1
            q = a * a + b * b
            if 0 < q < 1:
                break
        scale = math.sqrt(-2 * log(q) / q)
        self.spare = b * scale
        return a * scale

    def exponential(self):
        return -log(self.unit())

    def gamma(self, shape):
        """Marsaglia and Tsang 2000."""
        if shape < 1:
            power = log(self.unit()) / shape
            return self.gamma(shape + 1) * exp(power)
        d = shape - 1.0 / 3
        c = 1 / math.sqrt(9 * d)
        while True:
            x = self.normal()
            v = 1 + c * x
            u = self.unit()
            if v <= 0:
                continue
            v = v * v * v
            if log(u) < 0.5 * x * x + d - d * v + d * log(v):
                return d * v

    def weibull(self, shape):
        return exp(log(self.exponential()) / shape)

    def pareto(self, alpha):
        return exp(self.exponential() / alpha)


def log_gamma(x):
    """Lanczos, g = 7, n = 9."""
    of = (676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
          12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)
    total = 0.99999999999980993
    for i, number in enumerate(of):
        total += number / (x + i)
    t = x + 6.5
    return 0.91893853320467274178 + (x - 0.5) * log(t) - t + log(total)


def weibull_shape(cv):
    low, high, want = 0.05, 200.0, log(1 + cv * cv)
    for _ in range(100):
        shape = (low + high) / 2
        have = log_gamma(1 + 2 / shape) - 2 * log_gamma(1 + 1 / shape)
        if have > want:
            low = shape
        else:
            high = shape
    return (low + high) / 2


def sine(turns):
    """The Taylor series over a quarter turn."""
    quarters = 4 * turns
    sign = 1.0 if quarters < 2 else -1.0
    if quarters >= 2:
        quarters -= 2
    if quarters > 1:
        quarters = 2 - quarters
    a = quarters * 1.57079632679489661923
    square, total = a * a, 0.0
    for i in range(21, 1, -2):
        total = -(1 + total) * square / (i * (i - 1))
    return sign * (a + a * total)


class Zipf:
    """Hormann and Derflinger 1996, from min to max."""

    def __init__(self, exponent, low, high):
        self.s, self.low, self.high = exponent, low, high
        self.first = self.integral(low + 0.5) - self.weight(float(low))
        self.last = self.integral(high + 0.5)
        self.squeeze = low + 1 - self.inverse(self.integral(low + 1.5) - self.weight(low + 1.0))

    def integral(self, x):
        t = (1 - self.s) * log(x)
        if -0.01 < t < 0.01:
            return log(x) * (1 + t / 2 * (1 + t / 3 * (1 + t / 4 * (1 + t / 5))))
        return log(x) * ((exp(t) - 1) / t)

    def inverse(self, area):
        t = max(area * (1 - self.s), -1 + 2.0 ** -52)
        if -0.01 < t < 0.01:
            return exp(area * (1 - t * (0.5 - t * (1.0 / 3 - t * (0.25 - t * (
                0.2 - t * (1.0 / 6 - t / 7)))))))
        return exp(area * (log(1 + t) / t))

    def weight(self, x):
        return exp(-self.s * log(x))

    def draw(self, stream):
        while True:
            area = self.last + stream.unit() * (self.first - self.last)
            x = self.inverse(area)
            k = min(max(int(x + 0.5), self.low), self.high)
            if k - x <= self.squeeze or area >= self.integral(k + 0.5) - self.weight(float(k)):
                return k


def number(law, stream, mean=None, cv=None, value=None, low=0.0, high=0.0):
    """A function that draws from one of the laws of numbers."""
    def cut(draw):
        def drawn():
            x = draw()
            return high if 0 < high < x else max(x, low)
        return drawn
    if law == "constant":
        return lambda: value
    if law == "uniform":
        return cut(lambda: low + stream.unit() * (high - low))
    if law == "exponential":
        return cut(lambda: mean * stream.exponential())
    if law == "lognormal":
        variance = log(1 + cv * cv)
        centre, deviation = log(mean) - variance / 2, math.sqrt(variance)
        return cut(lambda: exp(centre + deviation * stream.normal()))
    if law == "gamma":
        shape, scale = 1 / (cv * cv), mean * (cv * cv)
        return cut(lambda: scale * stream.gamma(shape))
    assert law == "weibull"
    shape = weibull_shape(cv)
    scale = mean * exp(-log_gamma(1 + 1 / shape))
    return cut(lambda: scale * stream.weibull(shape))


def length(law, stream, low=1, high=0, mean=None, cv=None, exponent=None, tail_share=None,
           tail_alpha=None, tail_min=None):
    """The same for lengths in tokens."""
    top = high or 1073741823

    def tokens(x):
        return min(max(int(x + 0.5), 1, low), top)
    if law == "uniform":
        return lambda: low + stream.below(high - low + 1)
    if law == "zipf":
        zipf = Zipf(exponent, low, high)
        return lambda: zipf.draw(stream)
    if law in ("lognormal", "gamma"):
        draw = number(law, stream, mean, cv)
        return lambda: tokens(draw())
    assert law == "pareto_lognormal"
    body = number("lognormal", stream, mean, cv)
    return lambda: tokens(tail_min * stream.pareto(tail_alpha) if stream.unit() < tail_share
                          else body())


def arrivals(law, seed, rate, num, cv=None, on=None, off=None, period=None, amplitude=None,
             at=None, lasts=None, factor=None):
    """Times in ns. on, off, period, at, lasts: in ns, too."""
    stream = Stream(seed, "arrival")
    mean = 1e18 / float(int(rate * 1e9 + 0.5))
    gaps = number(law, stream, 1.0, cv) if law in ("gamma", "weibull") else None
    left_on = stream.exponential() * float(on) if law == "bursts" else 0.0
    now, times = 0, []

    def burst():
        nonlocal left_on
        left, gap = stream.exponential() * mean * (on / (on + off)), 0.0
        while left > left_on:
            left -= left_on
            gap += left_on + stream.exponential() * off
            left_on = stream.exponential() * float(on)
        left_on -= left
        return gap + left

    def swing():
        gap = 0.0
        while True:
            gap += stream.exponential() * mean / (1 + amplitude)
            turns = (float(now % period) + gap) / float(period)
            if stream.unit() * (1 + amplitude) < 1 + amplitude * sine(turns - float(int(turns))):
                return gap

    def spike():
        left, gap = stream.exponential() * mean, 0.0
        for end, height in ((at, 1.0), (at + lasts, factor)):
            stretch = float(end - now) - gap
            if stretch <= 0:
                continue
            if left < stretch * height:
                return gap + left / height
            left -= stretch * height
            gap += stretch
        return gap + left

    draw = {"poisson": lambda: stream.exponential() * mean, "bursts": burst, "diurnal": swing,
            "spike": spike}.get(law, lambda: gaps() * mean)
    for k in range(num):
        if law == "constant":
            now = int(Fraction(k * 10 ** 18, int(rate * 1e9 + 0.5)))
        else:
            now += int(draw() + 0.5)
        times.append(now)
    return times
