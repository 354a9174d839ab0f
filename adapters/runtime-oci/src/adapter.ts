import { daemonlessOptionFields, daemonlessOptions } from '@keelson/container-images';
import type { RuntimeAdapter } from '@keelson/container-runtime';
import { type Infer, optional, s } from '@keelson/core';
import { createOciRuntime } from './create-oci-runtime.ts';

const optionsSchema = s.message('keelson.runtime.oci.Options', 'Containers that an OCI binary such as runc runs.', {
  binary: optional(
    undefined,
    s.string({ minLength: 1 }),
    'Absolute path or name of the OCI binary; default: the first of runc and crun in PATH.',
  ),
  ...daemonlessOptionFields,
});

/** Options of the adapter as an operator configures them. */
export type OciAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `KEELSON_AGENT_RUNTIME=oci` and `--container-runtime=runtime-b`. */
export const ociAdapter: RuntimeAdapter<OciAdapterOptions> = {
  name: 'oci',
  optionsSchema,
  open({ binary, ...options }, context) {
    const { network } = context;
    return createOciRuntime({
      ...daemonlessOptions(options, context),
      ...(binary !== undefined && { binary }),
      ...(network !== undefined && { network }),
    });
  },
};
