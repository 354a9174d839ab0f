import type { RuntimeAdapter } from '@keelson/container-runtime';
import { type Infer, optional, required, s } from '@keelson/core';
import { createCriRuntime } from './create-cri-runtime.ts';

const pem = s.string({ minLength: 1 });

const optionsSchema = s.message('keelson.runtime.cri.Options', 'A daemon with the container runtime interface.', {
  endpoint: required(
    undefined,
    s.string({ minLength: 1 }),
    'Runtime service, e.g. unix:///run/containerd/containerd.sock or tcp://127.0.0.1:3735.',
  ),
  imageEndpoint: optional(
    undefined,
    s.string({ minLength: 1 }),
    'Image service; default: the endpoint of the runtime service.',
  ),
  tls: optional(
    undefined,
    s.message('keelson.runtime.cri.Tls', 'Keys of a connection with TLS, in PEM.', {
      key: required(undefined, pem, 'Private key of the client.'),
      certificate: required(undefined, pem, 'Certificate of the client.'),
      peer: required(undefined, pem, 'The only certificate that is accepted from the server.'),
    }),
    'Mutual TLS with a pinned server certificate; default: connections without TLS.',
  ),
  probeTimeoutMs: optional(
    undefined,
    s.int64({ minimum: 1 }),
    'Longest wait for the first response of the daemon, in milliseconds; default 2000.',
  ),
});

/** Options of the adapter as an operator configures them. */
export type CriAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `KEELSON_AGENT_RUNTIME=cri` and `--container-runtime-endpoint`. */
export const criAdapter: RuntimeAdapter<CriAdapterOptions> = {
  name: 'cri',
  optionsSchema,
  open({ endpoint, imageEndpoint, tls, probeTimeoutMs }, { nodeIp, clock, logger }) {
    return createCriRuntime({
      endpoint,
      ...(imageEndpoint !== undefined && { imageEndpoint }),
      ...(tls !== undefined && { tls }),
      ...(probeTimeoutMs !== undefined && { probeTimeoutMs }),
      ...(nodeIp !== undefined && { nodeIp }),
      clock,
      logger,
    });
  },
};
