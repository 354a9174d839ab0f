import type { ConnectOptions } from '@keelson/core';

/** Values of a query by name; absent ones are left out, lists are repeated. */
export function queryText(values: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === false) continue;
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) query.append(name, String(one));
  }
  return query.toString();
}

/** The node agent wants `1` for what is on. */
export function switchedOn(options: ConnectOptions, name: string): '1' | undefined {
  return options[name] === true ? '1' : undefined;
}

/** An absolute path of names. */
export function pathOf(...names: readonly string[]): string {
  return names.map((name) => `/${encodeURIComponent(name)}`).join('');
}
