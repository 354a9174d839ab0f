import type { KubeObject, StorageConversion } from '@keelson/core';
import { Event as StoredKind } from '../../core/v1/event.ts';
import type { Event as StoredEvent } from '../../core/v1/schema/index.ts';
import type { Event } from './schema/index.ts';

/** The fields of events.k8s.io/v1 in their order, with the names of these fields in core/v1. */
const storedNames = {
  eventTime: 'eventTime',
  series: 'series',
  reportingController: 'reportingComponent',
  reportingInstance: 'reportingInstance',
  action: 'action',
  reason: 'reason',
  regarding: 'involvedObject',
  related: 'related',
  note: 'message',
  type: 'type',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
} as const satisfies Record<Exclude<keyof Event, keyof KubeObject>, keyof StoredEvent>;

/** Fields in the order of core/v1, so that equal events are stored with equal bytes by both versions. */
const storedOrder = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'series',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
] as const satisfies readonly (typeof storedNames)[keyof typeof storedNames][];

const names = Object.entries(storedNames);
const shownNames = new Map(names.map(([shown, stored]) => [stored as string, shown]));
/** Fields that are present in core/v1 even when they are empty. */
const alwaysStored: Readonly<Record<string, unknown>> = { reportingComponent: '', reportingInstance: '' };

/** Fields that are present in events.k8s.io/v1 even when they are empty. */
const alwaysShown: Readonly<Record<string, unknown>> = { eventTime: null, regarding: {}, deprecatedSource: {} };
const emptySeries = { count: 0, lastObservedTime: null };

const withoutNulls = (value: object): object =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));

const isEmpty = (value: unknown): boolean => value === undefined || value === null || value === '';

const references = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];

/** Events are stored as core v1, with the fields that kube-apiserver maps onto each other. */
export const eventConversion: StorageConversion<Event> = {
  kind: StoredKind,
  toStorage(event) {
    const given: Readonly<Record<string, unknown>> = { ...event };
    const fields = storedOrder.flatMap((stored) => {
      const value = given[shownNames.get(stored) ?? ''] ?? alwaysStored[stored];
      return value === undefined || value === null ? [] : [[stored, stored === 'series' ? withoutNulls(value) : value]];
    });
    const { kind, apiVersion } = StoredKind;
    return { kind, apiVersion, ...(event.metadata && { metadata: event.metadata }), ...Object.fromEntries(fields) };
  },
  fromStorage(stored) {
    const given: Readonly<Record<string, unknown>> = { ...stored };
    const fields = names.flatMap(([shown, name]) => {
      const value = isEmpty(given[name]) ? alwaysShown[shown] : given[name];
      return value === undefined ? [] : [[shown, shown === 'series' ? { ...emptySeries, ...value } : value]];
    });
    const meta = stored.metadata && { metadata: stored.metadata };
    return { kind: 'Event', apiVersion: 'events.k8s.io/v1', ...meta, ...Object.fromEntries(fields) } as Event;
  },
  // The field of the involved object has different names, so changing the apiVersion is not sufficient.
  isRelabel: () => false,
  selectableFields: {
    ...Object.fromEntries(references.map((field) => [`regarding.${field}`, `involvedObject.${field}`])),
    reportingController: 'reportingComponent',
  },
};
