import { defineKind, nameColumn, optional, s } from 'keelson';

export const Backup = defineKind({
  group: 'ops.example.com',
  version: 'v1',
  kind: 'Backup',
  schema: s.object({
    spec: s.object({
      database: s.string({ minLength: 1 }),
      keep: optional(s.int32({ minimum: 1, maximum: 365 }), 'How many copies are kept.', { default: 7 }),
    }),
  }),
  columns: [
    nameColumn(),
    { name: 'Database', type: 'string', value: ({ spec }) => spec.database },
    { name: 'Keep', type: 'integer', value: ({ spec }) => spec.keep ?? 0 },
  ],
});
