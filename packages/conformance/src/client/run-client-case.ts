import type { ResourceClient } from '@keelson/core';
import type { ClientCase, ClientHarness, OpenedClient } from './harness.ts';
import { Part, type PartObject, Zone } from './suite-kinds.ts';

export interface ClientCaseOptions {
  /** A case that takes longer has failed. Default 30 s. */
  readonly timeoutMs?: number;
}

/** Opens a client, runs one case with it and disposes of it. Rejects when the case does, or when it takes too long. */
export async function runClientCase(
  harness: ClientHarness,
  clientCase: ClientCase,
  { timeoutMs = 30_000 }: ClientCaseOptions = {},
): Promise<void> {
  const opened: OpenedClient = await harness.open();
  const { client, namespaces } = opened;
  const allParts = client.resource(Part) as ResourceClient<PartObject>;
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not finished within ${timeoutMs} ms`)), timeoutMs);
    });
    const run = clientCase.run({
      client,
      namespaces,
      parts: allParts.namespace(namespaces[0]),
      allParts,
      zones: client.resource(Zone),
      warnings: opened.warnings ?? [],
      forgetHistory: async () => opened.forgetHistory?.(),
      part: (name, spec = {}, metadata = {}) => ({ metadata: { name, ...metadata }, spec }),
    });
    await Promise.race([run, late]);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${harness.name}: ${clientCase.id}: ${text}`, { cause: error });
  } finally {
    clearTimeout(timer);
    await opened.dispose();
  }
}
