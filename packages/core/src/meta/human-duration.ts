const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

function two(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${small}${smallUnit}`;
}

/**
 * A span of time as kubectl shows ages in tables: two units for short times, one for long times. Clocks differ: up to
 * two seconds in the future counts as now, more is `<invalid>`.
 */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1 || Number.isNaN(seconds)) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * minute) return `${seconds}s`;
  if (seconds < 10 * minute) return two(Math.floor(seconds / minute), 'm', seconds % minute, 's');
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`;
  if (seconds < 8 * hour) return two(Math.floor(seconds / hour), 'h', Math.floor(seconds / minute) % 60, 'm');
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`;
  if (seconds < 8 * day) return two(Math.floor(seconds / day), 'd', Math.floor(seconds / hour) % 24, 'h');
  if (seconds < 2 * year) return `${Math.floor(seconds / day)}d`;
  if (seconds < 8 * year) return two(Math.floor(seconds / year), 'y', Math.floor(seconds / day) % 365, 'd');
  return `${Math.floor(seconds / year)}y`;
}
