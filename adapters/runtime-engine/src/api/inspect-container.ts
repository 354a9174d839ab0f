import { isRuntimeError } from '@keelson/container-runtime';
import type { ContainerDetails } from './documents.ts';
import type { EngineHttp } from './engine-http.ts';

const looks = 5;

/**
 * What the engine knows of one container. Podman looks at a running one's process, and answers 500 when that ends
 * meanwhile ("read /proc/PID/cgroup: no such process"): the next look finds it ended.
 */
export async function inspectContainer(
  http: EngineHttp,
  id: string,
  signal: AbortSignal | undefined,
): Promise<ContainerDetails> {
  for (let look = 1; ; look += 1) {
    try {
      const { body } = await http.json<ContainerDetails>('GET', `/containers/${encodeURIComponent(id)}/json`, {
        signal,
      });
      return body;
    } catch (error) {
      if (look === looks || !isRuntimeError(error, 'Internal') || !/no such process/.test(error.message)) throw error;
    }
  }
}
