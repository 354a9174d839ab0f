import { daemonlessOptionFields, daemonlessOptions } from '@keelson/container-images';
import type { RuntimeAdapter } from '@keelson/container-runtime';
import { type Infer, s } from '@keelson/core';
import { createProcessRuntime } from './create-process-runtime.ts';

const optionsSchema = s.message(
  'keelson.runtime.process.Options',
  'Containers as processes of this machine.',
  daemonlessOptionFields,
);

/** Options of the adapter as an operator configures them. */
export type ProcessAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `KEELSON_AGENT_RUNTIME=process`. */
export const processAdapter: RuntimeAdapter<ProcessAdapterOptions> = {
  name: 'process',
  optionsSchema,
  open(options, context) {
    const { cgroupMountpoint } = context;
    return createProcessRuntime({
      ...daemonlessOptions(options, context),
      ...(cgroupMountpoint !== undefined && { cgroups: { mountpoint: cgroupMountpoint } }),
    });
  },
};
