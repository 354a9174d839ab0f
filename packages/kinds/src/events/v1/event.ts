import { defineKind, type FieldError, fieldError, type KindDefinition, type SelectableField } from '@keelson/core';
import { Event as StoredKind, validateEvent } from '../../core/v1/event.ts';
import type { Event as StoredEvent } from '../../core/v1/schema/index.ts';
import { checkUnchanged, type Errors, newErrors, sameJson } from '../../validation/checks.ts';
import { eventConversion } from './event-conversion.ts';
import { EventSchema, type Event as EventType } from './schema/index.ts';

const stored = (event: EventType): StoredEvent => eventConversion.toStorage(event) as StoredEvent;

const selectable: readonly SelectableField<EventType>[] = [
  ['regarding.kind', ({ regarding }) => regarding?.kind ?? ''],
  ['regarding.namespace', ({ regarding }) => regarding?.namespace ?? ''],
  ['regarding.name', ({ regarding }) => regarding?.name ?? ''],
  ['regarding.uid', ({ regarding }) => regarding?.uid ?? ''],
  ['regarding.apiVersion', ({ regarding }) => regarding?.apiVersion ?? ''],
  ['regarding.resourceVersion', ({ regarding }) => regarding?.resourceVersion ?? ''],
  ['regarding.fieldPath', ({ regarding }) => regarding?.fieldPath ?? ''],
  ['reason', ({ reason }) => reason ?? ''],
  ['reportingController', ({ reportingController }) => reportingController ?? ''],
  ['type', ({ type }) => type ?? ''],
];

/** An event in the newer API version. Stored as a core v1 event. */
export const EventsV1Event: KindDefinition<EventType> = defineKind({
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  names: { shortNames: ['ev'] },
  schema: EventSchema,
  storage: eventConversion,
  strategy: {
    allowCreateOnUpdate: true,
    defaultPropagation: 'none',
    ttlMs: (event) => StoredKind.strategy.ttlMs?.(stored(event)),
    default: dropEmptyTexts,
    validate: (event) => validateEvent(stored(event)),
    validateCreate,
    validateUpdate,
  },
  selectableFields: selectable,
  columns: StoredKind.columns.map((column) => ({
    ...column,
    value: (event: EventType, context) => column.value(stored(event), context),
  })),
});
export type EventsV1Event = EventType;

/** Removes empty texts, which the stored version does not distinguish from absent ones. */
function dropEmptyTexts(event: EventType): void {
  for (const field of ['reportingController', 'reportingInstance', 'action', 'reason', 'note', 'type'] as const) {
    if (event[field] === '') delete event[field];
  }
}

/** Validates a new event with the rules of this version. Error paths use the stored field names, as upstream does. */
function validateCreate(event: EventType): FieldError[] {
  const errors = newErrors();
  checkSeries(event, errors);
  if (!event.eventTime) errors.push(fieldError.required('eventTime'));
  if (event.type !== 'Normal' && event.type !== 'Warning') {
    errors.push(fieldError.invalid('type', '', `has invalid value: ${event.type ?? ''}`));
  }
  const { firstTimestamp, lastTimestamp, count, source } = stored(event);
  const unset = { firstTimestamp, lastTimestamp, count, source: source?.component || source?.host };
  for (const [field, value] of Object.entries(unset))
    if (value) errors.push(fieldError.invalid(field, '', 'needs to be unset'));
  return errors;
}

function checkSeries({ series }: EventType, errors: Errors): void {
  if (series === undefined) return;
  if (series.count < 2) errors.push(fieldError.invalid('series.count', '', 'should be at least 2'));
  if (!series.lastObservedTime) errors.push(fieldError.required('series.lastObservedTime'));
}

/** Rejects changes of fields other than `series`. */
function validateUpdate(event: EventType, old: EventType): FieldError[] {
  const errors = newErrors();
  if (!sameJson(event.series, old.series)) checkSeries(event, errors);
  const [now, before] = [stored(event), stored(old)];
  for (const field of [
    'involvedObject',
    'reason',
    'message',
    'source',
    'firstTimestamp',
    'lastTimestamp',
    'count',
    'type',
    'eventTime',
    'action',
    'related',
    'reportingComponent',
    'reportingInstance',
  ] as const) {
    const path = field === 'reportingComponent' ? 'reportingController' : field;
    checkUnchanged(now[field], before[field], path, errors);
  }
  return errors;
}
