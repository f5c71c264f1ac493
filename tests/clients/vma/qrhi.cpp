/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// qrhi.cpp - draws off-screen with Qt's QRhi on Vulkan: a textured quad behind and before another, the
// texture with mip levels, for several frames of different sizes. Prints the hash of all pixels and
// what QRhi's allocator holds.
//
// Linked with Qt alone it runs on VMA, which is in libQt6Gui; with Qt's sources of QRhi built on
// quire/quire_vma.h it runs on quire.
#include <cstdio>
#include <memory>

#include <QCryptographicHash>
#include <QGuiApplication>
#include <QVulkanInstance>
#include <rhi/qrhi.h>

#include "tests/clients/vma/quad_spirv.h"

namespace
{

constexpr int frames = 8;
constexpr int texels = 8;

template <size_t count> QShader shader(QShader::Stage stage, const uint32_t (&words)[count])
{
    QShader made;
    made.setStage(stage);
    made.setShader(
        QShaderKey(QShader::SpirvShader, QShaderVersion(100)),
        QShaderCode(QByteArray(reinterpret_cast<const char *>(words), sizeof words), "main"));
    return made;
}

template <typename object> std::unique_ptr<object> created(object *made)
{
    if (!made->create())
        qFatal("QRhi cannot create an object");
    return std::unique_ptr<object>(made);
}

struct scene {
    std::unique_ptr<QRhiBuffer> corners, order, view;
    std::unique_ptr<QRhiTexture> picture;
    std::unique_ptr<QRhiSampler> sampler;
    std::unique_ptr<QRhiShaderResourceBindings> bindings;
};

// Quads over half of the frame, and over the other half with a border.
constexpr float corners[] = {
    -0.75F, -0.75F, 0.25F, 0, 0, 0.25F, -0.75F, 0.25F, 1, 0, //
    -0.75F, 0.25F,  0.25F, 0, 1, 0.25F, 0.25F,  0.25F, 1, 1, //
    -0.25F, -0.25F, 0.75F, 0, 0, 0.75F, -0.25F, 0.75F, 1, 0, //
    -0.25F, 0.75F,  0.75F, 0, 1, 0.75F, 0.75F,  0.75F, 1, 1, //
};
constexpr quint16 order[] = {0, 1, 2, 2, 1, 3, 4, 5, 6, 6, 5, 7};
constexpr float view[] = {1, 1, 0, 0, 1, 1, 0, 1}; // scale, offset, tint

scene make_scene(QRhi *rhi)
{
    scene s;
    s.corners =
        created(rhi->newBuffer(QRhiBuffer::Immutable, QRhiBuffer::VertexBuffer, sizeof corners));
    s.order = created(rhi->newBuffer(QRhiBuffer::Static, QRhiBuffer::IndexBuffer, sizeof order));
    s.view = created(rhi->newBuffer(QRhiBuffer::Dynamic, QRhiBuffer::UniformBuffer, sizeof view));
    s.picture =
        created(rhi->newTexture(QRhiTexture::RGBA8, QSize(texels, texels), 1,
                                QRhiTexture::MipMapped | QRhiTexture::UsedWithGenerateMips));
    s.sampler =
        created(rhi->newSampler(QRhiSampler::Nearest, QRhiSampler::Nearest, QRhiSampler::Nearest,
                                QRhiSampler::ClampToEdge, QRhiSampler::ClampToEdge));
    const auto stages =
        QRhiShaderResourceBinding::VertexStage | QRhiShaderResourceBinding::FragmentStage;
    QRhiShaderResourceBindings *bindings = rhi->newShaderResourceBindings();
    bindings->setBindings(
        {QRhiShaderResourceBinding::uniformBuffer(0, stages, s.view.get()),
         QRhiShaderResourceBinding::sampledTexture(1, stages, s.picture.get(), s.sampler.get())});
    s.bindings = created(bindings);
    return s;
}

QRhiResourceUpdateBatch *upload(QRhi *rhi, const scene &s, int frame)
{
    QByteArray pixels;
    for (int i = 0; i < texels * texels; i++) {
        pixels.append(static_cast<char>(i % texels * 30 + frame));
        pixels.append(static_cast<char>(i / texels * 30));
        pixels.append(static_cast<char>(255 - i));
        pixels.append(static_cast<char>(255));
    }
    QRhiResourceUpdateBatch *batch = rhi->nextResourceUpdateBatch();
    batch->uploadStaticBuffer(s.corners.get(), corners);
    batch->uploadStaticBuffer(s.order.get(), order);
    batch->updateDynamicBuffer(s.view.get(), 0, sizeof view, view);
    const QRhiTextureSubresourceUploadDescription level(pixels);
    batch->uploadTexture(s.picture.get(), QRhiTextureUploadDescription({0, 0, level}));
    batch->generateMips(s.picture.get());
    return batch;
}

std::unique_ptr<QRhiGraphicsPipeline> make_pipeline(QRhi *rhi, const scene &s,
                                                    QRhiRenderPassDescriptor *pass)
{
    QRhiVertexInputLayout layout;
    layout.setBindings({{5 * sizeof(float)}});
    layout.setAttributes({{0, 0, QRhiVertexInputAttribute::Float3, 0},
                          {0, 1, QRhiVertexInputAttribute::Float2, 3 * sizeof(float)}});
    QRhiGraphicsPipeline *pipeline = rhi->newGraphicsPipeline();
    pipeline->setShaderStages(
        {{QRhiShaderStage::Vertex, shader(QShader::VertexStage, QUAD_VERT)},
         {QRhiShaderStage::Fragment, shader(QShader::FragmentStage, QUAD_FRAG)}});
    pipeline->setVertexInputLayout(layout);
    pipeline->setShaderResourceBindings(s.bindings.get());
    pipeline->setRenderPassDescriptor(pass);
    pipeline->setDepthTest(true);
    pipeline->setDepthWrite(true);
    return created(pipeline);
}

// Returns the pixels of one frame, whose targets are made for it.
QByteArray draw(QRhi *rhi, const scene &s, int frame)
{
    const QSize size(64 + frame * 40, 64 + frame * 24);
    auto color =
        created(rhi->newTexture(QRhiTexture::RGBA8, size, 1,
                                QRhiTexture::RenderTarget | QRhiTexture::UsedAsTransferSource));
    auto depth = created(rhi->newRenderBuffer(QRhiRenderBuffer::DepthStencil, size));
    QRhiTextureRenderTargetDescription attachments(color.get(), depth.get());
    QRhiTextureRenderTarget *made = rhi->newTextureRenderTarget(attachments);
    std::unique_ptr<QRhiRenderPassDescriptor> pass(made->newCompatibleRenderPassDescriptor());
    made->setRenderPassDescriptor(pass.get());
    auto target = created(made);
    auto pipeline = make_pipeline(rhi, s, pass.get());

    QRhiCommandBuffer *commands = nullptr;
    QRhiReadbackResult result;
    if (rhi->beginOffscreenFrame(&commands) != QRhi::FrameOpSuccess)
        qFatal("QRhi cannot begin a frame");
    commands->beginPass(target.get(), Qt::black, {1, 0}, upload(rhi, s, frame));
    commands->setGraphicsPipeline(pipeline.get());
    commands->setViewport(
        {0, 0, static_cast<float>(size.width()), static_cast<float>(size.height())});
    commands->setShaderResources();
    const QRhiCommandBuffer::VertexInput input(s.corners.get(), 0);
    commands->setVertexInput(0, 1, &input, s.order.get(), 0, QRhiCommandBuffer::IndexUInt16);
    commands->drawIndexed(std::size(order));
    QRhiResourceUpdateBatch *after = rhi->nextResourceUpdateBatch();
    after->readBackTexture({color.get()}, &result);
    commands->endPass(after);
    rhi->endOffscreenFrame();
    const qsizetype inside = (size.height() * 3 / 8 * size.width() + size.width() * 3 / 8) * 4;
    if (result.data.size() <= inside || !result.data[inside])
        qFatal("nothing is drawn");
    return result.data;
}

} // namespace

int main(int argc, char **argv)
{
    QGuiApplication application(argc, argv);
    int messages = 0;
    QVulkanInstance instance;
    instance.setApiVersion(QVersionNumber(1, 3)); // as Qt Quick does
    instance.setLayers({"VK_LAYER_KHRONOS_validation"});
    instance.installDebugOutputFilter(
        [&messages](QVulkanInstance::DebugMessageSeverityFlags severity,
                    QVulkanInstance::DebugMessageTypeFlags, const void *data) {
            if (severity & (QVulkanInstance::WarningSeverity | QVulkanInstance::ErrorSeverity)) {
                const auto *message =
                    static_cast<const VkDebugUtilsMessengerCallbackDataEXT *>(data);
                std::printf("validation: %s\n", message->pMessage);
                messages++;
            }
            return true;
        });
    if (!instance.create() || instance.layers().isEmpty()) {
        std::printf("skipped: there is no Vulkan driver with the validation layer\n");
        return 77;
    }
    QRhiVulkanInitParams parameters;
    parameters.inst = &instance;
    std::unique_ptr<QRhi> rhi(QRhi::create(QRhi::Vulkan, &parameters));
    if (!rhi)
        qFatal("QRhi cannot be created");
    QCryptographicHash hash(QCryptographicHash::Sha256);
    {
        const scene s = make_scene(rhi.get());
        for (int frame = 0; frame < frames; frame++)
            hash.addData(draw(rhi.get(), s, frame));
        const QRhiStats held = rhi->statistics();
        std::printf("blocks %u allocations %u\n", held.blockCount, held.allocCount);
    }
    rhi.reset();
    std::printf("hash %s\n", hash.result().toHex().constData());
    return messages > 0;
}
