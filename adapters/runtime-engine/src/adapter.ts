import type { RuntimeAdapter } from '@keelson/container-runtime';
import { type Infer, optional, required, s } from '@keelson/core';
import { createEngineRuntime } from './create-engine-runtime.ts';

const optionsSchema = s.message('keelson.runtime.engine.Options', 'An engine with the Docker Engine API.', {
  endpoint: required(
    undefined,
    s.string({ minLength: 1 }),
    'Unix socket of the engine, e.g. unix:///var/run/docker.sock.',
  ),
  infraImage: required(
    undefined,
    s.string({ minLength: 1 }),
    'Image of the infrastructure container of every pod. Its command must wait until it is killed.',
  ),
  sharedPid: optional(
    undefined,
    s.bool(),
    'The containers of a pod share one PID namespace unless the pod specifies otherwise; default false.',
  ),
  owner: optional(
    undefined,
    s.string({ pattern: '^[A-Za-z0-9_.-]+$' }),
    'Label value that distinguishes the containers of this node from others at the engine; default: the node name.',
  ),
});

/** Options of the adapter as an operator configures them. */
export type EngineAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `KEELSON_AGENT_RUNTIME=engine` and `--container-runtime=runtime-a`. */
export const engineAdapter: RuntimeAdapter<EngineAdapterOptions> = {
  name: 'engine',
  optionsSchema,
  open({ endpoint, infraImage, sharedPid, owner }, context) {
    const { nodeName, stateDirectory, nodeIp, network, clock, logger } = context;
    return createEngineRuntime({
      endpoint,
      infraImage,
      ...(sharedPid !== undefined && { sharedPid }),
      // Several agents may use one engine. The node name separates their containers.
      owner: owner ?? nodeName.replace(/[^\w.-]/g, '-'),
      stateDirectory,
      ...(network !== undefined && { network }),
      ...(nodeIp !== undefined && { nodeIp }),
      clock,
      logger,
    });
  },
};
