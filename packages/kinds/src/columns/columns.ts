import {
  type Column,
  type ColumnContext,
  type ColumnType,
  humanDuration,
  type KubeObject,
  timeMs,
} from '@keelson/core';

type Value<T> = (object: T, context: ColumnContext) => string | number | boolean;

/** A column that every table shows. */
export function column<T>(name: string, type: ColumnType, description: string, value: Value<T>): Column<T> {
  return { name, type, description, priority: 0, value };
}

/** A column of wide output only. */
export function wide<T>(name: string, type: ColumnType, description: string, value: Value<T>): Column<T> {
  return { name, type, description, priority: 1, value };
}

/** The column with the name of the object. `priority` 1 restricts it to wide output. */
export function nameColumn(priority = 0): Column<KubeObject> {
  return {
    name: 'Name',
    type: 'string',
    format: 'name',
    description: 'Name of the object, unique among its kind in the namespace.',
    priority,
    value: (object) => object.metadata?.name ?? '',
  };
}

/** Time since the object was created. */
export const ageColumn: Column<KubeObject> = column(
  'Age',
  'string',
  'Time since the object was created.',
  (object, { now }) => sinceText(object.metadata?.creationTimestamp, now),
);

/** Time since an instant, in the format of tables. */
export function sinceText(time: string | null | undefined, now: Date): string {
  const at = time ? timeMs(time) : undefined;
  return at === undefined ? '<unknown>' : humanDuration(now.getTime() - at);
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
