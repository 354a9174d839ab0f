import { isRuntimeError } from '@keelson/container-runtime';
import type { ContainerDetails } from './documents.ts';
import type { EngineHttp } from './engine-http.ts';

const maxAttempts = 5;

/**
 * Inspects one container. Podman reads the process of a running container, and responds with 500 when the process ends
 * meanwhile ("read /proc/PID/cgroup: no such process"); the next attempt then reports the container as exited.
 */
export async function inspectContainer(
  http: EngineHttp,
  id: string,
  signal: AbortSignal | undefined,
): Promise<ContainerDetails> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { body } = await http.json<ContainerDetails>('GET', `/containers/${encodeURIComponent(id)}/json`, {
        signal,
      });
      return body;
    } catch (error) {
      const processEnded = isRuntimeError(error, 'Internal') && /no such process/.test(error.message);
      if (attempt === maxAttempts || !processEnded) throw error;
    }
  }
}
