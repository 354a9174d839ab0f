import { DurationError, parseDuration } from '@keelson/core';

/**
 * A recurring schedule. Type `fields`: the minutes whose local time matches the fields. Type `every`: a constant
 * interval after the last occurrence.
 */
export type Schedule =
  | {
      readonly type: 'fields';
      readonly minutes: ReadonlySet<number>;
      readonly hours: ReadonlySet<number>;
      readonly daysOfMonth: ReadonlySet<number>;
      readonly months: ReadonlySet<number>;
      /** 0 is Sunday. */
      readonly daysOfWeek: ReadonlySet<number>;
      /**
       * True when the day of month or the day of week is `*`: both fields must match. Otherwise one of them suffices.
       */
      readonly bothDays: boolean;
    }
  | { readonly type: 'every'; readonly milliseconds: number };

/** The error of an invalid schedule, with the message of Kubernetes. */
export class ScheduleError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ScheduleError';
  }
}

interface Bounds {
  readonly minimum: number;
  readonly maximum: number;
  /** Names of the values, beginning with the name of `minimum`. */
  readonly names?: readonly string[];
}

const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const dayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const bounds = {
  minutes: { minimum: 0, maximum: 59 },
  hours: { minimum: 0, maximum: 23 },
  daysOfMonth: { minimum: 1, maximum: 31 },
  months: { minimum: 1, maximum: 12, names: monthNames },
  daysOfWeek: { minimum: 0, maximum: 6, names: dayNames },
} as const satisfies Readonly<Record<string, Bounds>>;

const descriptors: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

/** The text of a schedule, shortened for error messages. */
const shown = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}...` : text);

/**
 * Reads a schedule of cron jobs: five fields as in crontab, or a descriptor such as `@daily` or `@every 1h30m`. Accepts
 * what Kubernetes accepts: `?` means `*`, and there are no seconds and no `L`, `W` or `#`. See docs/adr/0068.
 *
 * @throws ScheduleError
 */
export function parseSchedule(text: string): Schedule {
  if (text === '') throw new ScheduleError('empty spec string');
  if (text.startsWith('@every ')) return parseEvery(text);
  const descriptor = descriptors.get(text);
  if (text.startsWith('@') && descriptor === undefined) {
    throw new ScheduleError(`unrecognized descriptor: ${shown(text)}`);
  }
  const fields = (descriptor ?? text).split(/\s+/).filter((field) => field !== '');
  if (fields.length !== 5) {
    throw new ScheduleError(`expected exactly 5 fields, found ${fields.length}: [${shown(fields.join(' '))}]`);
  }
  const [minutes = '', hours = '', days = '', months = '', weekdays = ''] = fields;
  const daysOfMonth = parseField(days, bounds.daysOfMonth);
  const daysOfWeek = parseField(weekdays, bounds.daysOfWeek);
  return {
    type: 'fields',
    minutes: parseField(minutes, bounds.minutes).values,
    hours: parseField(hours, bounds.hours).values,
    daysOfMonth: daysOfMonth.values,
    months: parseField(months, bounds.months).values,
    daysOfWeek: daysOfWeek.values,
    bothDays: daysOfMonth.star || daysOfWeek.star,
  };
}

function parseEvery(text: string): Schedule {
  try {
    const milliseconds = Number(parseDuration(text.slice('@every '.length)) / 1_000_000n);
    return { type: 'every', milliseconds: Math.max(1000, milliseconds - (milliseconds % 1000)) };
  } catch (error) {
    if (!(error instanceof DurationError)) throw error;
    throw new ScheduleError(`failed to parse duration ${shown(text)}: time: ${error.message}`);
  }
}

/** Parses a comma-separated list of ranges. `star` is true when one of them is a plain `*`. */
function parseField(text: string, limits: Bounds): { values: Set<number>; star: boolean } {
  const values = new Set<number>();
  let star = false;
  for (const range of text.split(',')) {
    if (range === '') continue;
    const { start, end, step, all } = parseRange(range, limits);
    if (all && step === 1) star = true;
    for (let value = start; value <= end; value += step) values.add(value);
  }
  return { values, star };
}

/** Parses `*`, `3` or `3-5`, each with an optional `/step`. */
function parseRange(text: string, { minimum, maximum, names }: Bounds) {
  const [range = '', stepText, ...moreSteps] = text.split('/');
  const [low = '', high, ...moreLimits] = range.split('-');
  const all = low === '*' || low === '?';
  let start = minimum;
  let end = maximum;
  if (!all) {
    start = numberOrName(low, minimum, names);
    if (moreLimits.length > 0) throw new ScheduleError(`too many hyphens: ${shown(text)}`);
    end = high === undefined ? start : numberOrName(high, minimum, names);
  }
  if (moreSteps.length > 0) throw new ScheduleError(`too many slashes: ${shown(text)}`);
  const step = stepText === undefined ? 1 : numberOf(stepText);
  // A single value with a step, such as `3/5`, is a range from this value to the maximum.
  if (stepText !== undefined && high === undefined) end = maximum;
  if (start < minimum) {
    throw new ScheduleError(`beginning of range (${start}) below minimum (${minimum}): ${shown(text)}`);
  }
  if (end > maximum) throw new ScheduleError(`end of range (${end}) above maximum (${maximum}): ${shown(text)}`);
  if (start > end)
    throw new ScheduleError(`beginning of range (${start}) beyond end of range (${end}): ${shown(text)}`);
  if (step === 0) throw new ScheduleError(`step of range should be a positive number: ${shown(text)}`);
  return { start, end, step, all };
}

function numberOrName(text: string, minimum: number, names: readonly string[] | undefined): number {
  const position = names?.indexOf(text.toLowerCase()) ?? -1;
  return position < 0 ? numberOf(text) : minimum + position;
}

function numberOf(text: string): number {
  const failed = (reason: string) =>
    new ScheduleError(
      `failed to parse int from ${shown(text)}: strconv.Atoi: parsing ${JSON.stringify(shown(text))}: ${reason}`,
    );
  if (!/^[+-]?\d+$/.test(text)) throw failed('invalid syntax');
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw failed('value out of range');
  if (value < 0) throw new ScheduleError(`negative number (${value}) not allowed: ${shown(text)}`);
  return value;
}
