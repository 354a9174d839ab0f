import type { Clock, Logger } from '@keelson/core';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import { CertificateRotation } from '../credentials/certificate-rotation.ts';
import { CertificateStore } from '../credentials/certificate-store.ts';
import { type AgentClients, createAgentClients } from './client-source.ts';

export interface ApiAccessParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0..1. */
  readonly random?: () => number;
}

/** The agent's clients, and what keeps their certificate good. */
export interface ApiAccess {
  readonly clients: AgentClients;
  /** Never resolves; rejects when the node has lost its identity for good. */
  readonly failed: Promise<never>;
  start(): void;
  close(): Promise<void>;
}

/** Opens the way to the API server that the config names; undefined when the agent runs alone. */
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
