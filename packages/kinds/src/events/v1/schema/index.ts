export { type Event, EventSchema, type EventSeries, EventSeriesSchema } from './event.ts';
