import type { RuntimeAdapter } from '@keelson/container-runtime';
import { type Infer, optional, s } from '@keelson/core';
import { createProcessRuntime } from './create-process-runtime.ts';

const optionsSchema = s.message('keelson.runtime.process.Options', 'Containers as processes of this machine.', {
  imageSources: optional(
    undefined,
    s.list(s.string({ minLength: 1 })),
    'Image archives and OCI layouts, or directories of them, besides those of the node.',
  ),
  relistPeriodMs: optional(
    undefined,
    s.int64({ minimum: 1 }),
    'Longest time between two complete inspections of the containers, in milliseconds; default 10000.',
  ),
});

/** Options of the adapter as an operator configures them. */
export type ProcessAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `KEELSON_AGENT_RUNTIME=process`. */
export const processAdapter: RuntimeAdapter<ProcessAdapterOptions> = {
  name: 'process',
  optionsSchema,
  open({ imageSources = [], relistPeriodMs }, context) {
    const { stateDirectory, imageDirectories, nodeIp, cgroupMountpoint, clock, logger } = context;
    return createProcessRuntime({
      stateDirectory,
      imageSources: [...imageDirectories, ...imageSources],
      registries: {},
      ...(nodeIp !== undefined && { nodeIp }),
      ...(cgroupMountpoint !== undefined && { cgroups: { mountpoint: cgroupMountpoint } }),
      ...(relistPeriodMs !== undefined && { relistPeriodMs }),
      clock,
      logger,
    });
  },
};
