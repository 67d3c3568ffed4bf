//! Claims that name what is there, and claims that only compare, in English and Chinese.

use super::*;
use crate::offer::Claim;

/// A machine of `count` GPUs of the model with this id, each with its memory.
fn machine(id: &str, count: u32) -> Record {
    let spec = table().get(id).unwrap_or_else(|| panic!("{id}"));
    let mut record = node(count);
    for device in &mut record.inventory.devices {
        (device.spec, device.name, device.pci) = (Some(id.to_owned()), spec.name.clone(), None);
        (device.units, device.memory) = (spec.device_units(), Bytes(spec.device_value("memory_size").unwrap()));
    }
    record
}

/// Status of the claim on the machine, if it is held against it, and whether the finding is there.
fn claimed(record: &Record, text: &str) -> (Option<Status>, bool) {
    let mut bare = offer(1);
    (bare.model, bare.count, bare.memory) = (None, None, None);
    bare.guarantees.clear();
    bare.claims = vec![Claim { text: text.to_owned(), line: 7 }];
    let a = judged(record, Some(&bare));
    let status = a.requirements.iter().find(|r| r.id == "claim-line-7").map(|r| r.status);
    let is_refused = a.verdict == Verdict::NotAccepted;
    assert_eq!(is_refused, status == Some(Status::Fail), "{text}: {:?}", a.verdict);
    (status, codes(&a).contains(&"GA-OFFER-05"))
}

#[test]
fn another_model_count_or_size_than_claimed_is_refused() {
    let (h100, a100, small) =
        (machine("h100-sxm5-80gb", 4), machine("a100-sxm4-80gb", 4), machine("a100-sxm4-40gb", 8));
    for (record, text) in [
        (&a100, "8x A100 80GB"),
        (&a100, "8 × NVIDIA A100-SXM4-80GB"),
        (&a100, "NVIDIA A100 80GB x8"),
        (&a100, "Eight NVIDIA A100 Tensor Core GPUs with 80 GB each"),
        (&a100, "8 GPUs"),
        (&a100, "H100 80GB"),
        (&a100, "This server has 4 NVIDIA H100 GPUs"),
        (&a100, "powered by NVIDIA H200"),
        (&a100, "96 vCPU, 1 TB RAM, 8x A100"),
        (&h100, "RTX 4090"),
        (&h100, "4x GeForce RTX 4090 24GB"),
        (&small, "8x A100 80GB"),
        (&small, "80 GB VRAM"),
        // The same in Chinese.
        (&a100, "8卡A100 80G"),
        (&a100, "八卡 NVIDIA A100"),
        (&a100, "配备8张A100-80G显卡"),
        (&a100, "独享英伟达H100显卡"),
        (&a100, "整机8块A100，每卡80GB显存"),
        (&small, "A100 80G"),
        (&small, "单卡80GB显存"),
    ] {
        assert_eq!(claimed(record, text), (Some(Status::Fail), true), "{text}");
    }
}

#[test]
fn what_is_there_or_more_passes() {
    let (a100, many) = (machine("a100-sxm4-80gb", 4), machine("a100-sxm4-80gb", 8));
    for (record, text) in [
        (&a100, "4x A100 80GB"),
        (&a100, "NVIDIA A100-SXM4-80GB"),
        (&a100, "A100"),
        (&a100, "4 GPUs, 80 GB VRAM each"),
        (&many, "4x A100 80GB"),
        (&a100, "A100 40GB"),
        (&a100, "4卡A100 80G显存"),
        (&a100, "四张英伟达A100"),
    ] {
        assert_eq!(claimed(record, text), (Some(Status::Pass), false), "{text}");
    }
}

#[test]
fn what_compares_or_speaks_of_other_things_refuses_nobody() {
    let h100 = machine("h100-sxm5-80gb", 1);
    for text in [
        "faster than an A100",
        "Up to 9x faster than A100",
        "30x the inference speed of the A100",
        "A100-class performance",
        "outperforms A100, V100 and T4",
        "better than 8x A100 80GB",
        "replaces four A100",
        "drop-in alternative to RTX 4090",
        "the successor of the A100",
        "A100 equivalent",
        "2x A100 performance",
        ">= A100",
        "A100/H100",
        "A100, H100 or L40S available",
        "Also available: A100",
        "upgrade from A100 to H100",
        "not an A100",
        "up to 8 GPUs",
        "FP16 312 TFLOPS like A100",
        "PCIe x16",
        "H100 PCIe Gen5 x16",
        "8 vCPU, 64 GB RAM",
        "24/7 GPU support",
        "640 GB VRAM in total",
        "989 TFLOPS FP16",
        // The same in Chinese.
        "性能优于A100",
        "比A100快3倍",
        "媲美A100",
        "超越8卡A100",
        "相当于4张A100",
        "对标A100",
        "A100级别算力",
        "A100平替",
        "可选A100、H100",
        "8核CPU，64G内存",
        "显存共640GB",
    ] {
        assert_eq!(claimed(&h100, text), (None, false), "{text}");
    }
}

#[test]
fn a_long_text_is_no_plain_statement() {
    let text = "8 x H100 with ".repeat(100);
    assert_eq!(claimed(&machine("a100-sxm4-80gb", 1), &text), (None, false));
}

#[test]
fn a_claim_about_gpus_that_cannot_be_seen_is_open() {
    let mut record = record(vec![host()]);
    add_gemm(&mut record, &host().id, &quiet(1e9));
    add_triad(&mut record, &host().id, &quiet(1e9));
    assert_eq!(claimed(&record, "8x A100").0, Some(Status::NotTested));
    let mut record = machine("a100-sxm4-80gb", 4);
    record.inventory.host.pci_gpus = Observed::NotObservable("no sysfs".to_owned());
    assert_eq!(claimed(&record, "8x A100").0, Some(Status::Inconclusive));
    let device = &mut record.inventory.devices[0];
    (device.spec, device.name) = (None, "Graphics Device".to_owned());
    assert_eq!(claimed(&record, "4x A100").0, Some(Status::Inconclusive));
}
