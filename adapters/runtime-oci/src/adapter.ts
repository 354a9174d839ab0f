import type { RuntimeAdapter } from '@keelson/container-runtime';
import { type Infer, optional, s } from '@keelson/core';
import { createOciRuntime } from './create-oci-runtime.ts';

const optionsSchema = s.message('keelson.runtime.oci.Options', 'Containers that an OCI binary such as runc runs.', {
  binary: optional(
    undefined,
    s.string({ minLength: 1 }),
    'Absolute path or name of the OCI binary; default: the first of runc and crun in PATH.',
  ),
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
export type OciAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `KEELSON_AGENT_RUNTIME=oci` and `--container-runtime=runtime-b`. */
export const ociAdapter: RuntimeAdapter<OciAdapterOptions> = {
  name: 'oci',
  optionsSchema,
  open({ binary, imageSources = [], relistPeriodMs }, context) {
    const { stateDirectory, imageDirectories, nodeIp, network, clock, logger } = context;
    return createOciRuntime({
      ...(binary !== undefined && { binary }),
      stateDirectory,
      imageSources: [...imageDirectories, ...imageSources],
      registries: {},
      ...(network !== undefined && { network }),
      ...(nodeIp !== undefined && { nodeIp }),
      ...(relistPeriodMs !== undefined && { relistPeriodMs }),
      clock,
      logger,
    });
  },
};
