import type { Encryption } from '@keelson/access';
import type { HttpApi } from '@keelson/http-koa';

/** Path of the report about the stored objects (GET), which reads the whole store. */
export const encryptionPath = '/keelson/encryption';
/** Path of the last rotation: GET reports its state, POST starts a new rotation. */
export const rotationPath = '/keelson/encryption/rotation';

/** Serves the endpoints behind `keelson encrypt`. They are authorized like every path that is no resource. */
export function serveEncryption(api: HttpApi, encryption: Encryption): void {
  api.use(async (ctx, next) => {
    if (ctx.path !== encryptionPath && ctx.path !== rotationPath) return next();
    const isPost = ctx.method === 'POST' && ctx.path === rotationPath;
    if (ctx.method !== 'GET' && !isPost) {
      ctx.set('Allow', ctx.path === rotationPath ? 'GET, POST' : 'GET');
      return ctx.throw(405, 'the server does not allow this method on the requested resource');
    }
    if (isPost) encryption.rotate();
    ctx.set('Cache-Control', 'no-cache, private');
    ctx.body = ctx.path === encryptionPath ? { stores: await encryption.report() } : { stores: encryption.rotations() };
    if (isPost) ctx.status = 202;
    return undefined;
  });
}
