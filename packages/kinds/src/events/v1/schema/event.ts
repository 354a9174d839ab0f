import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { EventSourceSchema, ObjectReferenceSchema } from '../../../core/v1/schema/index.ts';

const eventSeries = s.message('k8s.io.api.events.v1.EventSeries', 'An event that keeps happening.', {
  count: always(1, s.int32(), 'How often it has happened so far.'),
  lastObservedTime: always(2, s.microTime(), 'When it happened last.'),
});
export interface EventSeries extends Infer<typeof eventSeries> {}
export const EventSeriesSchema: Schema<EventSeries> = eventSeries;

const event = s.message(
  'k8s.io.api.events.v1.Event',
  'Something that happened to an object, kept for a limited time.',
  {
    eventTime: always(
      2,
      s.microTime(),
      'When it was first seen, to the microsecond; null for an event of an older reporter.',
    ),
    series: optional(3, EventSeriesSchema, 'Present when the event keeps happening.'),
    reportingController: optional(4, s.string(), 'Name of the reporting controller.'),
    reportingInstance: optional(5, s.string(), 'Which instance of the controller reports.'),
    action: optional(6, s.string(), 'What was done or failed with regard to the object.'),
    reason: optional(7, s.string(), 'One CamelCase word for why the event happened.'),
    regarding: filled(8, ObjectReferenceSchema, 'Object that the event is about.'),
    related: optional(9, ObjectReferenceSchema, 'Secondary object of the action.'),
    note: optional(10, s.string(), 'Human-readable message.'),
    type: optional(11, s.string(), 'Normal or Warning.'),
    deprecatedSource: filled(12, EventSourceSchema, 'The source of a core v1 event.'),
    deprecatedFirstTimestamp: optional(13, s.time(), 'The first timestamp of a core v1 event.'),
    deprecatedLastTimestamp: optional(14, s.time(), 'The last timestamp of a core v1 event.'),
    deprecatedCount: optional(15, s.int32(), 'The count of a core v1 event.'),
  },
);
export interface Event extends KubeObject, Infer<typeof event> {}
export const EventSchema: Schema<Event> = event;
