const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = "January February March April May June July August September October November December".split(" ");

/** Python's strftime in the C locale and local time, for date and time directives. */
export function strftime(date: Date, format: string): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const directives: Record<string, () => string> = {
    Y: () => String(date.getFullYear()),
    y: () => two(date.getFullYear() % 100),
    m: () => two(date.getMonth() + 1),
    d: () => two(date.getDate()),
    e: () => String(date.getDate()).padStart(2, " "),
    H: () => two(date.getHours()),
    I: () => two(date.getHours() % 12 || 12),
    M: () => two(date.getMinutes()),
    S: () => two(date.getSeconds()),
    f: () => `${String(date.getMilliseconds()).padStart(3, "0")}000`,
    p: () => (date.getHours() < 12 ? "AM" : "PM"),
    A: () => days[date.getDay()],
    a: () => days[date.getDay()].slice(0, 3),
    w: () => String(date.getDay()),
    B: () => months[date.getMonth()],
    b: () => months[date.getMonth()].slice(0, 3),
    h: () => months[date.getMonth()].slice(0, 3),
    j: () => String(dayOfYear(date)).padStart(3, "0"),
    F: () => strftime(date, "%Y-%m-%d"),
    T: () => strftime(date, "%H:%M:%S"),
    R: () => strftime(date, "%H:%M"),
    D: () => strftime(date, "%m/%d/%y"),
    x: () => strftime(date, "%m/%d/%y"),
    X: () => strftime(date, "%H:%M:%S"),
    c: () => strftime(date, "%a %b %e %H:%M:%S %Y"),
    n: () => "\n",
    t: () => "\t",
    "%": () => "%",
  };
  return format.replace(/%(-?)([A-Za-z%])/g, (directive, plain: string, letter: string) => {
    const value = directives[letter]?.();
    if (value === undefined) return directive;
    return plain ? value.replace(/^[0 ]+(?=\d)/, "") : value;
  });
}

function dayOfYear(date: Date): number {
  const start = Date.UTC(date.getFullYear(), 0, 1);
  return Math.round((Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - start) / 86_400_000) + 1;
}
