import { type ContainerRuntime, RuntimeError } from '@keelson/container-runtime';
import { Calls } from '../api/calls.ts';
import { containerState } from '../convert/from-container.ts';
import { fromResources } from '../convert/resources.ts';
import { type Answer, answer } from './answer.ts';
import { fromContainerMessage } from './convert/container-config.ts';
import { containerInfo, toContainer, toContainerStatus } from './convert/to-container.ts';
import { toStats } from './convert/to-stats.ts';
import { findId, startingWith } from './find-id.ts';

/** The calls about containers. */
export function containerAnswers(runtime: ContainerRuntime): readonly Answer[] {
  const find = (word = '', signal?: AbortSignal) =>
    findId(word, (id) => runtime.listContainers(id === undefined ? {} : { id }, signal && { signal }));
  const findSandbox = (word = '', signal?: AbortSignal) =>
    findId(word, (id) => runtime.listPodSandboxes(id === undefined ? {} : { id }, signal && { signal }));
  return [
    answer(Calls.createContainer, async ({ podSandboxId, config = {} }, signal) => {
      const wanted = fromContainerMessage(config);
      return {
        containerId: await runtime.createContainer(await findSandbox(podSandboxId, signal), wanted, { signal }),
      };
    }),
    answer(Calls.startContainer, async ({ containerId }, signal) => {
      await runtime.startContainer(await find(containerId, signal), { signal });
      return {};
    }),
    answer(Calls.stopContainer, async ({ containerId, timeout = 0 }, signal) => {
      const gracePeriodMs = Math.max(0, timeout) * 1000;
      await runtime.stopContainer(await find(containerId, signal), { gracePeriodMs }, { signal });
      return {};
    }),
    answer(Calls.removeContainer, async ({ containerId }, signal) => {
      await runtime.removeContainer(await find(containerId, signal), { signal });
      return {};
    }),
    answer(Calls.listContainers, async ({ filter = {} }, signal) => {
      const { id, state, podSandboxId, labelSelector } = filter;
      const wanted = {
        ...(state && { state: containerState(state.state) }),
        ...(labelSelector && { labels: labelSelector }),
      };
      const sandboxId = podSandboxId ? await findSandbox(podSandboxId, signal) : undefined;
      const containers = await runtime.listContainers({ ...wanted, ...(sandboxId && { sandboxId }) }, { signal });
      return { containers: startingWith(id, containers).map(toContainer) };
    }),
    answer(Calls.containerStatus, async ({ containerId, verbose = false }, signal) => {
      const status = await runtime.containerStatus(await find(containerId, signal), { signal });
      return { status: toContainerStatus(status), ...(verbose && { info: containerInfo(status) }) };
    }),
    answer(Calls.updateContainerResources, async ({ containerId, linux = {} }, signal) => {
      if (runtime.updateContainerResources === undefined)
        throw new RuntimeError('Unsupported', `the runtime ${runtime.name} cannot change the resources of a container`);
      await runtime.updateContainerResources(await find(containerId, signal), fromResources(linux), { signal });
      return {};
    }),
    answer(Calls.reopenContainerLog, async ({ containerId }, signal) => {
      await runtime.reopenContainerLog(await find(containerId, signal), { signal });
      return {};
    }),
    answer(Calls.execSync, async ({ containerId, cmd = [], timeout = 0 }, signal) => {
      const request = { command: cmd, ...(timeout > 0 && { execTimeoutMs: timeout * 1000 }) };
      return await runtime.execSync(await find(containerId, signal), request, { signal });
    }),
    answer(Calls.containerStats, async ({ containerId }, signal) => {
      const id = await find(containerId, signal);
      const [stats] = await runtime.listContainerStats({ id }, { signal });
      if (stats !== undefined) return { stats: toStats(stats) };
      // Says so if there is no such container.
      const { state } = await runtime.containerStatus(id, { signal });
      throw new RuntimeError('InvalidState', `container ${id} uses nothing: it is ${state}`);
    }),
    answer(Calls.listContainerStats, async ({ filter = {} }, signal) => {
      const { id, podSandboxId, labelSelector } = filter;
      const sandboxId = podSandboxId ? await findSandbox(podSandboxId, signal) : undefined;
      const wanted = { ...(sandboxId && { sandboxId }), ...(labelSelector && { labels: labelSelector }) };
      return { stats: startingWith(id, await runtime.listContainerStats(wanted, { signal })).map(toStats) };
    }),
  ];
}
