import type { Option, ValueType } from '@keelson/core/internal';

/** The field of an option in a configuration file: `syncFrequency` for `sync-frequency`. */
function fieldName(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Declares an option of the agent; its flag and its field in a configuration file follow from the name. */
export function option<const N extends string, T>(
  name: N,
  type: ValueType<T>,
  value: T,
  help: string,
  traits: Pick<Option<N, T>, 'shownDefault' | 'deprecated'> = {},
): Option<N, T> {
  return { name, flag: `--${name}`, field: fieldName(name), type, default: value, help, ...traits };
}

/** Declares an option that only the command line accepts. */
export function flagOnly<const N extends string, T>(...row: Parameters<typeof option<N, T>>): Option<N, T> {
  const { field: _, ...rest } = option(...row);
  return rest;
}
