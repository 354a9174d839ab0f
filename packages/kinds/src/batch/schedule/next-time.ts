import type { Schedule } from './parse-schedule.ts';
import { offsetOf } from './time-zone.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
/** Maximum number of years in which the next occurrence is searched for. */
const maxYears = 5;

type Fields = Extract<Schedule, { type: 'fields' }>;

/**
 * The first occurrence after `after`, or undefined when there is none within five years, e.g. for 30 February. A local
 * time that is skipped at the start of daylight saving time does not occur. A local time that is repeated at its end
 * occurs twice.
 */
export function nextTime(schedule: Schedule, after: Date, timeZone = 'UTC'): Date | undefined {
  if (schedule.type === 'every') {
    const time = after.getTime();
    return new Date(time - (time % 1000) + schedule.milliseconds);
  }
  const { minutes, hours, months } = schedule;
  // A schedule field may be valid without containing any value, and then never matches.
  if (minutes.size === 0 || hours.size === 0 || months.size === 0) return undefined;
  let time = Math.floor(after.getTime() / minute) * minute + minute;
  const lastYear = wallClock(time, timeZone).getUTCFullYear() + maxYears;
  for (;;) {
    const wall = wallClock(time, timeZone);
    if (wall.getUTCFullYear() > lastYear) return undefined;
    if (!months.has(wall.getUTCMonth() + 1)) {
      time = instantOf(Date.UTC(wall.getUTCFullYear(), wall.getUTCMonth() + 1), time, timeZone);
    } else if (!matchesDay(schedule, wall)) {
      time = instantOf(Date.UTC(wall.getUTCFullYear(), wall.getUTCMonth(), wall.getUTCDate() + 1), time, timeZone);
    } else if (!hours.has(wall.getUTCHours())) {
      time += (60 - wall.getUTCMinutes()) * minute;
    } else if (!minutes.has(wall.getUTCMinutes())) {
      time += minute;
    } else {
      return new Date(time);
    }
  }
}

function matchesDay({ daysOfMonth, daysOfWeek, bothDays }: Fields, wall: Date): boolean {
  const inMonth = daysOfMonth.has(wall.getUTCDate());
  const inWeek = daysOfWeek.has(wall.getUTCDay());
  return bothDays ? inMonth && inWeek : inMonth || inWeek;
}

/** The local time in a time zone, as the UTC fields of a date. */
function wallClock(time: number, timeZone: string): Date {
  return new Date(time + offsetOf(time, timeZone));
}

/** The first instant after `after` with the local time `wall`, or a later instant if this local time is skipped. */
function instantOf(wall: number, after: number, timeZone: string): number {
  const offsets = [offsetOf(wall - day, timeZone), offsetOf(wall + day, timeZone)];
  const reached = offsets
    .map((offset) => wall - offset)
    .filter((time) => time > after && time + offsetOf(time, timeZone) >= wall);
  // If the UTC offset changes twice within a day, neither offset may be correct. The search then continues in small
  // steps.
  return reached.length > 0 ? Math.min(...reached) : after + 15 * minute;
}
