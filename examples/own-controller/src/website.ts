import { conditionSchema, defineKind, type ObjectOf, optional, s } from 'keelson';

/** A page with a title, which the controller writes into a config map. */
export const Website = defineKind({
  group: 'web.example.com',
  version: 'v1',
  kind: 'Website',
  schema: s.object({
    spec: s.object({ title: s.string({ minLength: 1 }) }),
    status: optional(
      s.object({
        observedGeneration: optional(s.int32()),
        page: optional(s.string(), 'Name of the config map with the page.'),
        conditions: optional(s.list(conditionSchema)),
      }),
    ),
  }),
  subresources: [{ type: 'status', name: 'status' }],
});
export type Website = ObjectOf<typeof Website>;
