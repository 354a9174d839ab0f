import type { Clock, Logger } from '@keelson/core/runtime';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import { CertificateRotation } from '../credentials/certificate-rotation.ts';
import { CertificateStore } from '../credentials/certificate-store.ts';
import { type AgentClients, createAgentClients } from './client-source.ts';

export interface ApiAccessParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns a number in [0, 1). Default: `Math.random`. */
  readonly random?: () => number;
}

/** The agent's clients of the API server, and the rotation of their certificate. */
export interface ApiAccess {
  readonly clients: AgentClients;
  /** Never resolves; rejects when the client certificate has expired and cannot be renewed. */
  readonly failed: Promise<never>;
  start(): void;
  close(): Promise<void>;
}

/** Creates the clients of the configured API server; returns undefined when the agent runs without one. */
export function openAccess(
  { api, nodeName, node, server }: Pick<AgentConfig, 'api' | 'nodeName' | 'node' | 'server'>,
  { clock, logger, random = Math.random }: ApiAccessParts,
): ApiAccess | undefined {
  if (api === undefined) return undefined;
  const store = api.rotateCertificates ? new CertificateStore(server.certDir) : undefined;
  const clients = createAgentClients({
    config: api,
    ...(store === undefined ? {} : { certificates: store }),
    heartbeatMs: node.statusUpdateMs,
    clock,
    logger: logger.child({ component: 'api' }),
  });
  const rotation =
    store === undefined
      ? undefined
      : new CertificateRotation({
          client: clients.main,
          shown: clients.shown,
          store,
          nodeName,
          clock,
          logger: logger.child({ component: 'certificates' }),
          random,
        });
  return {
    clients,
    failed: rotation?.failed ?? new Promise<never>(() => {}),
    start: () => rotation?.start(),
    async close() {
      await rotation?.stop();
      clients.close();
    },
  };
}
