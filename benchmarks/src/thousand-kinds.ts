import { defineKind, optional, s } from '@keelson/core';

/** Unused kinds, which must not make a server slower. */
export default Array.from({ length: 1_000 }, (_, i) =>
  defineKind({
    group: `group${i % 50}.example.com`,
    version: 'v1',
    kind: `Thing${i}`,
    schema: s.message(`com.example.group${i % 50}.v1.Thing${i}`, 'A thing.', {
      spec: optional(
        undefined,
        s.message(`com.example.group${i % 50}.v1.Thing${i}Spec`, 'What is wanted.', {
          size: optional(undefined, s.int32(), 'Size.'),
        }),
        'What is wanted.',
      ),
    }),
  }),
);
