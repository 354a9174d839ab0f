import { defineKind, s } from '@keelson/core';

/** A kind that the built-in ones do not have, for servers that load it. */
export default defineKind({
  group: 'test.keelson.example',
  version: 'v1',
  kind: 'Extra',
  schema: s.object({ spec: s.object({ size: s.int32() }) }),
});
