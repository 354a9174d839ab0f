import {
  type Column,
  defineKind,
  type FieldError,
  fieldError,
  type KindDefinition,
  qualifiedNameErrors,
  type SelectableField,
} from '@keelson/core';
import { column, nameColumn, sinceText, wide } from '../../columns/columns.ts';
import { checkOneOf, checkText, type Errors, newErrors, pushInvalid } from '../../validation/checks.ts';
import { EventSchema, type Event as EventType } from './schema/index.ts';

/** Events are removed one hour after their last update. */
const ttlMs = 3_600_000;
const maxWord = 128;
const maxMessage = 1024;

const selectable: readonly SelectableField<EventType>[] = [
  ['involvedObject.kind', (event) => event.involvedObject?.kind ?? ''],
  ['involvedObject.namespace', (event) => event.involvedObject?.namespace ?? ''],
  ['involvedObject.name', (event) => event.involvedObject?.name ?? ''],
  ['involvedObject.uid', (event) => event.involvedObject?.uid ?? ''],
  ['involvedObject.apiVersion', (event) => event.involvedObject?.apiVersion ?? ''],
  ['involvedObject.resourceVersion', (event) => event.involvedObject?.resourceVersion ?? ''],
  ['involvedObject.fieldPath', (event) => event.involvedObject?.fieldPath ?? ''],
  ['reason', (event) => event.reason ?? ''],
  ['reportingComponent', (event) => event.reportingComponent ?? ''],
  ['source', (event) => event.source?.component || event.reportingComponent || ''],
  ['type', (event) => event.type ?? ''],
];

const columns: readonly Column<EventType>[] = [
  column('Last Seen', 'string', 'Time since it last happened.', (event, { now }) => lastSeen(event, now)),
  column('Type', 'string', 'Normal or Warning.', (event) => event.type ?? ''),
  column('Reason', 'string', 'One word for why it happened.', (event) => event.reason ?? ''),
  column('Object', 'string', 'Object that it is about.', ({ involvedObject }) => {
    const kind = (involvedObject?.kind ?? '').toLowerCase();
    return involvedObject?.name ? `${kind}/${involvedObject.name}` : kind;
  }),
  wide('Subobject', 'string', 'Part of the object.', (event) => event.involvedObject?.fieldPath ?? ''),
  wide('Source', 'string', 'Who reports it.', (event) => {
    const component = event.source?.component || event.reportingComponent || '';
    const host = event.source?.host || event.reportingInstance || '';
    return host ? `${component}, ${host}` : component;
  }),
  column('Message', 'string', 'Human-readable message.', (event) => (event.message ?? '').trim()),
  wide('First Seen', 'string', 'Time since it first happened.', (event, { now }) => firstSeen(event, now)),
  wide('Count', 'string', 'How often it happened.', (event) => event.series?.count || event.count || 1),
  nameColumn(1),
];

/** Something that happened to an object. */
export const Event: KindDefinition<EventType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Event',
  names: { shortNames: ['ev'] },
  schema: EventSchema,
  strategy: {
    allowCreateOnUpdate: true,
    defaultPropagation: 'none',
    ttlMs: () => ttlMs,
    validate: validateEvent,
  },
  selectableFields: selectable,
  columns,
});
export type Event = EventType;

function firstSeen(event: EventType, now: Date): string {
  return sinceText(event.firstTimestamp ?? event.eventTime, now);
}

function lastSeen(event: EventType, now: Date): string {
  const last = event.series?.lastObservedTime ?? event.lastTimestamp;
  return last ? sinceText(last, now) : firstSeen(event, now);
}

/**
 * Validates an event. Its namespace is that of the involved object, or `default` for cluster-scoped objects. Events
 * with
 * `eventTime` may also use `kube-system` for cluster-scoped objects.
 */
export function validateEvent(event: EventType): FieldError[] {
  const errors = newErrors();
  const own = event.metadata?.namespace ?? '';
  const involved = event.involvedObject?.namespace ?? '';
  const clusterWide = ['', 'default', ...(event.eventTime ? ['kube-system'] : [])];
  const fits = involved === '' ? clusterWide.includes(own) : involved === own || Boolean(event.eventTime);
  if (!fits) errors.push(fieldError.invalid('involvedObject.namespace', involved, 'does not match event.namespace'));
  if (event.eventTime) checkNewStyle(event, errors);
  return errors;
}

/** Events with `eventTime` have stricter rules. */
function checkNewStyle(event: EventType, errors: Errors): void {
  if (checkText(event.reportingComponent, 'reportingController', errors)) {
    pushInvalid(qualifiedNameErrors(event.reportingComponent), event.reportingComponent, 'reportingController', errors);
  }
  for (const field of ['reportingInstance', 'action', 'reason'] as const) {
    if (checkText(event[field], field, errors) && event[field].length > maxWord) {
      errors.push(fieldError.invalid(field, event[field], `can have at most ${maxWord} characters`));
    }
  }
  if ((event.message ?? '').length > maxMessage) {
    errors.push(fieldError.invalid('message', event.message, `can have at most ${maxMessage} characters`));
  }
  checkOneOf(event.type, ['Normal', 'Warning'], 'type', errors);
}
