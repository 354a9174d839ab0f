import type { ConnectOptions } from '@keelson/core';

/** Formats a query. Absent values are omitted, elements of lists are repeated parameters. */
export function queryText(values: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === false) continue;
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) query.append(name, String(one));
  }
  return query.toString();
}

/** A boolean option in the form of the node agent: `1` for true, otherwise omitted. */
export function switchedOn(options: ConnectOptions, name: string): '1' | undefined {
  return options[name] === true ? '1' : undefined;
}

/** An absolute URL path with encoded segments. */
export function pathOf(...names: readonly string[]): string {
  return names.map((name) => `/${encodeURIComponent(name)}`).join('');
}
