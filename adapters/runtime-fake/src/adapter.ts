import type { RuntimeAdapter } from '@keelson/container-runtime';
import { s } from '@keelson/core';
import { createFakeRuntime } from './fake-runtime.ts';
import { FakeWorld } from './fake-world.ts';

const optionsSchema = s.message('keelson.runtime.fake.Options', 'Containers in memory that run nothing.', {});

/** The adapter behind `KEELSON_AGENT_RUNTIME=@keelson/runtime-fake`. Its containers exist only in memory. */
export const fakeAdapter: RuntimeAdapter<Readonly<Record<string, never>>> = {
  name: 'fake',
  optionsSchema,
  open: async (_options, { clock }) => createFakeRuntime(new FakeWorld({ clock })),
};
