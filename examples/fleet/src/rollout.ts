import { defineKind, nameColumn, type ObjectOf, optional, s } from 'keelson';

/** A plane at the edge, by the address of its API. */
export const Site = defineKind({
  group: 'fleet.example.com',
  version: 'v1',
  kind: 'Site',
  scope: 'Cluster',
  schema: s.object({ spec: s.object({ server: s.string({ minLength: 1 }) }) }),
});
export type Site = ObjectOf<typeof Site>;

/** Settings that every site with the labels has to have. */
export const Rollout = defineKind({
  group: 'fleet.example.com',
  version: 'v1',
  kind: 'Rollout',
  scope: 'Cluster',
  schema: s.object({
    spec: s.object({ siteLabels: optional(s.map(s.string())), data: s.map(s.string()) }),
    status: optional(
      s.object({
        sites: optional(s.int32()),
        ready: optional(s.int32()),
        failed: optional(s.list(s.string()), 'Sites that could not be reached, with the reason.'),
      }),
    ),
  }),
  subresources: [{ type: 'status', name: 'status' }],
  columns: [
    nameColumn(),
    { name: 'Ready', type: 'string', value: ({ status }) => `${status?.ready ?? 0}/${status?.sites ?? 0}` },
  ],
});
export type Rollout = ObjectOf<typeof Rollout>;
