import { nextTime, type Schedule } from '@keelson/kinds';

const minuteMs = 60_000;
/** A greater number of missed times is reported with an event. */
const manyMissed = 100;

/** The last time at which a job should have been made. */
export interface DueTime {
  readonly time: Date;
  /** True when more than 100 scheduled times have passed since the last job. */
  readonly tooMany: boolean;
}

/** The last occurrence after `since` and not after `now`. */
export function dueTime(schedule: Schedule, timeZone: string | undefined, since: Date, now: Date): DueTime | undefined {
  const first = nextTime(schedule, since, timeZone);
  if (first === undefined || first > now) return undefined;
  if (schedule.type === 'every') {
    const passed = Math.floor((now.getTime() - first.getTime()) / schedule.milliseconds);
    return { time: new Date(first.getTime() + passed * schedule.milliseconds), tooMany: passed + 1 > manyMissed };
  }
  // The next occurrence never decreases with a later start. Bisection finds the last minute whose next occurrence is
  // not after `now`.
  let [low, high] = [Math.floor(since.getTime() / minuteMs), Math.floor(now.getTime() / minuteMs) + 1];
  let time = first;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    const next = nextTime(schedule, new Date(middle * minuteMs), timeZone);
    if (next === undefined || next > now) high = middle;
    else {
      low = middle;
      time = next;
    }
  }
  return { time, tooMany: countFrom(schedule, timeZone, first, now) > manyMissed };
}

function countFrom(schedule: Schedule, timeZone: string | undefined, first: Date, now: Date): number {
  let count = 0;
  for (let time: Date | undefined = first; time !== undefined && time <= now && count <= manyMissed; count += 1)
    time = nextTime(schedule, time, timeZone);
  return count;
}
