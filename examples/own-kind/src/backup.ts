import { defineKind, optional, s } from 'keelson';

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
    {
      name: 'Name',
      type: 'string',
      format: 'name',
      description: '',
      priority: 0,
      value: (b) => b.metadata?.name ?? '',
    },
    {
      name: 'Database',
      type: 'string',
      description: 'The database to back up.',
      priority: 0,
      value: (b) => b.spec.database,
    },
    {
      name: 'Keep',
      type: 'integer',
      description: 'How many copies are kept.',
      priority: 0,
      value: (b) => b.spec.keep ?? 0,
    },
  ],
});
