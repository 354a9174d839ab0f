import type { Column, ColumnContext, ColumnType } from '@keelson/core';

export { ageColumn, nameColumn, sinceText } from '@keelson/core';

type Value<T> = (object: T, context: ColumnContext) => string | number | boolean;

/** A column that every table shows. */
export function column<T>(name: string, type: ColumnType, description: string, value: Value<T>): Column<T> {
  return { name, type, description, priority: 0, value };
}

/** A column of wide output only. */
export function wide<T>(name: string, type: ColumnType, description: string, value: Value<T>): Column<T> {
  return { name, type, description, priority: 1, value };
}

/** Labels as `a=b,c=d` in the order of their keys. */
export function labelsText(labels: Record<string, string> | undefined): string {
  const pairs = Object.entries(labels ?? {});
  if (pairs.length === 0) return '<none>';
  return pairs
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',');
}
