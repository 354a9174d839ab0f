const formats = new Map<string, Intl.DateTimeFormat>();
/** Maximum number of cached formats. There are fewer than 600 time zones. */
const maxFormats = 1000;

/** True for the name of a time zone in the IANA database. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    const known = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
    // Names are case-sensitive.
    return known === name || known.toLowerCase() !== name.toLowerCase();
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The UTC offset of a time zone at an instant in milliseconds, rounded to whole minutes. */
export function offsetOf(time: number, timeZone: string): number {
  if (timeZone === 'UTC') return 0;
  const wall: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(time)) wall[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = wall;
  return Date.UTC(year, month - 1, day, hour, minute) - Math.floor(time / 60_000) * 60_000;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (!format) {
    if (formats.size >= maxFormats) formats.clear();
    const numeric = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const;
    format = new Intl.DateTimeFormat('en', { ...numeric, timeZone, hourCycle: 'h23' });
    formats.set(timeZone, format);
  }
  return format;
}
