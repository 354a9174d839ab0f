import assert from 'node:assert/strict';
import type { Key, Revision, Store, WriteOp, WriteResult } from '@keelson/core/storage-adapter';
import { StoreModel } from './model.ts';
import { type Bytes, bytes, refused, succeeded } from './store-driver.ts';

/** A store and its model, which are written together; every result is compared. */
export class Twin {
  readonly store: Store;
  readonly model: StoreModel;

  private constructor(store: Store, model: StoreModel) {
    this.store = store;
    this.model = model;
  }

  static async of(store: Store): Promise<Twin> {
    return new Twin(store, new StoreModel(await store.currentRevision()));
  }

  async write(op: WriteOp): Promise<WriteResult> {
    const before = this.model.current(op.key);
    const expected = this.model.accepts(op);
    const kept = op.op === 'put' ? { ...op, value: Buffer.from(op.value) } : op;
    const result = await this.store.write(op);
    assert.equal(result.ok, expected, `${op.op} of ${op.key} expecting ${op.expect}`);
    if (result.ok) {
      this.model.apply(kept, result.revision);
      const created = before?.createRevision ?? result.revision;
      assert.equal(result.createRevision, created);
    } else {
      assert.deepEqual(refused(result).current, before);
    }
    return result;
  }

  /** Puts with the expectation that matches the current state of the key. */
  async put(key: Key, value: Bytes): Promise<Revision> {
    const expect = this.model.current(key)?.modRevision ?? 0;
    return succeeded(await this.write({ op: 'put', key, value: bytes(value), expect }));
  }

  async remove(key: Key): Promise<Revision> {
    return succeeded(await this.write({ op: 'delete', key, expect: this.model.current(key)?.modRevision ?? 0 }));
  }

  /** Returns the same model with the store that replaced the old one. */
  on(store: Store): Twin {
    return new Twin(store, this.model);
  }
}
