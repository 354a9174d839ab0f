import { humanDuration } from '../meta/human-duration.ts';
import { timeMs } from '../meta/time.ts';
import type { KubeObject } from '../meta/types.ts';
import type { Column } from './kind-definition.ts';

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

/** The column with the time since the object was created. */
export const ageColumn: Column<KubeObject> = {
  name: 'Age',
  type: 'string',
  description: 'Time since the object was created.',
  priority: 0,
  value: (object, { now }) => sinceText(object.metadata?.creationTimestamp, now),
};

/** Time since an instant, in the format of tables. */
export function sinceText(time: string | null | undefined, now: Date): string {
  const at = time ? timeMs(time) : undefined;
  return at === undefined ? '<unknown>' : humanDuration(now.getTime() - at);
}
