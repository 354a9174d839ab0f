import { optional, s } from './schema.ts';

/** `kind` and `apiVersion` as every object begins; also for objects nested in others. They have no protobuf number. */
export const typeMetaFields = {
  kind: optional(undefined, s.string(), 'Kind of the object. Defaults to the kind that the path names.', {
    jsonOnly: true,
  }),
  apiVersion: optional(
    undefined,
    s.string(),
    'Group and version of the format the object is written in. Defaults to those of the path.',
    { jsonOnly: true },
  ),
} as const;
