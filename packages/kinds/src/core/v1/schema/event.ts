import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { ObjectReferenceSchema } from './references.ts';

const eventSource = s.message('k8s.io.api.core.v1.EventSource', 'Who reports an event.', {
  component: optional(1, s.string(), 'Program that reports, e.g. kubelet.'),
  host: optional(2, s.string(), 'Node on which it runs.'),
});
export interface EventSource extends Infer<typeof eventSource> {}
export const EventSourceSchema: Schema<EventSource> = eventSource;

const eventSeries = s.message('k8s.io.api.core.v1.EventSeries', 'An event that keeps happening.', {
  count: optional(1, s.int32(), 'How often it has happened so far.'),
  lastObservedTime: optional(2, s.microTime(), 'When it happened last.'),
});
export interface EventSeries extends Infer<typeof eventSeries> {}
export const EventSeriesSchema: Schema<EventSeries> = eventSeries;

const event = s.message('k8s.io.api.core.v1.Event', 'Something that happened to an object, kept for a limited time.', {
  involvedObject: always(2, ObjectReferenceSchema, 'Object that the event is about.'),
  reason: optional(3, s.string(), 'One CamelCase word for why the event happened.'),
  message: optional(4, s.string(), 'Human-readable message.'),
  source: filled(5, EventSourceSchema, 'Who reports the event.'),
  firstTimestamp: optional(6, s.time(), 'When it was first seen.'),
  lastTimestamp: optional(7, s.time(), 'When it was last seen.'),
  count: optional(8, s.int32(), 'How often it was seen.'),
  type: optional(9, s.string(), 'Normal or Warning.'),
  eventTime: optional(10, s.microTime(), 'When it was first seen, to the microsecond (newer reporters).'),
  series: optional(11, EventSeriesSchema, 'Present when the event keeps happening (newer reporters).'),
  action: optional(12, s.string(), 'What was done or failed with regard to the object.'),
  related: optional(13, ObjectReferenceSchema, 'Secondary object of the action.'),
  reportingComponent: filled(14, s.string(), 'Name of the reporting controller.'),
  reportingInstance: filled(15, s.string(), 'Which instance of the controller reports.'),
});
export interface Event extends KubeObject, Infer<typeof event> {}
export const EventSchema: Schema<Event> = event;
