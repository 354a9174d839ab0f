import { type ContainerRuntime, RuntimeError } from '@keelson/container-runtime';
import { Calls } from '../api/calls.ts';
import { sandboxState } from '../convert/from-sandbox.ts';
import { type Answer, answer } from './answer.ts';
import { fromSandboxMessage } from './convert/sandbox-config.ts';
import { toSandbox, toSandboxStatus } from './convert/to-sandbox.ts';
import { findId, startingWith } from './find-id.ts';

/** The calls about sandboxes. */
export function sandboxAnswers(runtime: ContainerRuntime): readonly Answer[] {
  const find = (word = '', signal?: AbortSignal) =>
    findId(word, (id) => runtime.listPodSandboxes(id === undefined ? {} : { id }, signal && { signal }));
  return [
    answer(Calls.runPodSandbox, async ({ config = {}, runtimeHandler }, signal) => {
      if (runtimeHandler) throw new RuntimeError('InvalidArgument', `there is no runtime handler "${runtimeHandler}"`);
      return { podSandboxId: await runtime.runPodSandbox(fromSandboxMessage(config), { signal }) };
    }),
    answer(Calls.stopPodSandbox, async ({ podSandboxId }, signal) => {
      await runtime.stopPodSandbox(await find(podSandboxId, signal), { signal });
      return {};
    }),
    answer(Calls.removePodSandbox, async ({ podSandboxId }, signal) => {
      await runtime.removePodSandbox(await find(podSandboxId, signal), { signal });
      return {};
    }),
    answer(Calls.podSandboxStatus, async ({ podSandboxId }, signal) => {
      const status = await runtime.podSandboxStatus(await find(podSandboxId, signal), { signal });
      return { status: toSandboxStatus(status) };
    }),
    answer(Calls.listPodSandbox, async ({ filter = {} }, signal) => {
      const { id, state, labelSelector } = filter;
      const wanted = {
        ...(state && { state: sandboxState(state.state) }),
        ...(labelSelector && { labels: labelSelector }),
      };
      const items = startingWith(id, await runtime.listPodSandboxes(wanted, { signal }));
      return { items: items.map(toSandbox) };
    }),
  ];
}
